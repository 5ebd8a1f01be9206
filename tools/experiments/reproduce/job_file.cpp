#include "tools/experiments/reproduce/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "framework/core/config/value.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/recipe_file.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRecipe = "recipe";
constexpr const char* kDatasetBytes = "dataset_bytes";

/// The size of all files together; nothing if there are none, or the size of one is unknown, such
/// as that of a URL.
std::optional<std::uintmax_t> bytes_of(const std::vector<std::string>& files) {
  std::uintmax_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code unknown;
    bytes += std::filesystem::file_size(file, unknown);
    if (unknown) return std::nullopt;
  }
  if (files.empty()) return std::nullopt;
  return bytes;
}

/// The sizes of the datasets, by key, for those whose size is known.
ordered_json dataset_bytes(const Trial& trial) {
  Diagnostics ignored;  // the trial reports mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(trial.recipe, ignored).sections;
  const ConfigNode* const data = recipe.find("data");
  ordered_json sizes = ordered_json::object();
  for (const std::string name : {"train_dataset", "val_dataset"}) {
    const std::string key = "data." + name;
    std::vector<std::string> files;
    if (const auto setting = std::ranges::find(trial.settings, key, &Setting::key);
        setting != trial.settings.end()) {
      read_value(parse_override(setting->value, {}, ignored), &files);
    } else if (data != nullptr && data->find(name) != nullptr) {
      read_value(*data->find(name), &files);
    }
    if (const auto bytes = bytes_of(files)) sizes[key] = *bytes;
  }
  return sizes;
}

ordered_json facts_of(const Trial& trial) {
  ordered_json facts = {{kRecipe, recipe_hash(trial.recipe)}};
  for (const Setting& setting : trial.settings) {
    if (changes_results(setting)) facts[setting.key] = setting.value;
  }
  facts[kDatasetBytes] = dataset_bytes(trial);
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
    throw ConfigError(fmt::format(
        "{}: expected a JSON object, got other text. Give another --folder", path_.string()));
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
