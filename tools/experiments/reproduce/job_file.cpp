#include "tools/experiments/reproduce/job_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/recipe_file.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRecipe = "recipe";
constexpr const char* kDatasetBytes = "dataset_bytes";

/// The sizes of the datasets, by key, for those whose size is known.
ordered_json sizes_of_datasets(const Trial& trial) {
  Diagnostics ignored;  // the trial reports mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(trial.recipe, ignored).sections;
  ordered_json sizes = ordered_json::object();
  for (const std::string_view key : kDatasetKeys) {
    if (const auto bytes = dataset_bytes(value_of(key, recipe, trial.settings)))
      sizes[std::string(key)] = *bytes;
  }
  return sizes;
}

ordered_json facts_of(const Trial& trial) {
  ordered_json facts = {{kRecipe, recipe_hash(trial.recipe)}};
  for (const Setting& setting : trial.settings) {
    if (changes_results(setting)) facts[setting.key] = setting.value;
  }
  facts[kDatasetBytes] = sizes_of_datasets(trial);
  return facts;
}

/// Describes the first dataset with another size; empty if there is none. A moved file is the same
/// dataset. Earlier versions did not record sizes.
std::string changed_dataset(const ordered_json& before, const ordered_json& now) {
  if (!before.contains(kDatasetBytes)) return {};
  for (const auto& [key, bytes] : now.at(kDatasetBytes).items()) {
    const auto old = before.at(kDatasetBytes).find(key);
    if (old != before.at(kDatasetBytes).end() && *old != bytes)
      return fmt::format("{} had {} bytes and now has {}", key, old->dump(), bytes.dump());
  }
  return {};
}

/// Describes the first difference; empty if there is none.
std::string change_between(const ordered_json& before, const ordered_json& now) {
  const auto text = [](const ordered_json& facts, const std::string& key) {
    return facts.contains(key) ? facts.at(key).get<std::string>() : "the recipe's value";
  };
  ordered_json keys = before;
  keys.update(now);
  for (const auto& [key, value] : keys.items()) {
    if (key == kDatasetBytes || text(before, key) == text(now, key)) continue;
    // Earlier versions recorded more of these keys.
    if (!changes_results({key, ""})) continue;
    if (key == kRecipe) return "the recipe has changed";
    return fmt::format("{} was {} and is now {}", key, text(before, key), text(now, key));
  }
  return changed_dataset(before, now);
}

}  // namespace

JobFile::JobFile(const std::filesystem::path& folder) : path_(folder / "reproduce.json") {
  std::ifstream file(path_);
  if (!file) return;
  trials_ = ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!trials_.is_object()) {
    throw ConfigError(
        fmt::format("{}: expected a JSON object, got text that is not one. Give another --folder",
                    path_.string()));
  }
}

void JobFile::check(const Trial& trial) const {
  const auto found = trials_.find(trial.id);
  if (found == trials_.end()) return;
  if (const std::string change = change_between(*found, facts_of(trial)); !change.empty()) {
    throw ConfigError(fmt::format(
        "{}: expected the recipe, keys and datasets with which {} was started, but {}. Give "
        "another --folder",
        path_.parent_path().string(), trial.id, change));
  }
}

bool JobFile::has_other_recipe(const Trial& trial) const {
  const auto found = trials_.find(trial.id);
  if (found == trials_.end()) return false;
  try {
    return found->value(kRecipe, "") != recipe_hash(trial.recipe);
  } catch (const IoError&) {
    return true;
  }
}

void JobFile::note(const Trial& trial) {
  if (trials_.contains(trial.id)) return;
  trials_[trial.id] = facts_of(trial);
  write_file(path_, trials_.dump(2) + "\n");
}

std::optional<std::vector<Setting>> JobFile::settings_of(const std::string& trial) const {
  const auto found = trials_.find(trial);
  if (found == trials_.end()) return std::nullopt;
  std::vector<Setting> settings;
  for (const auto& [key, value] : found->items()) {
    if (key != kRecipe && key != kDatasetBytes) settings.push_back({key, value.get<std::string>()});
  }
  return settings;
}

}  // namespace precast::tools
