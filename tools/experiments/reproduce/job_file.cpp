#include "tools/experiments/reproduce/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_file.h"
#include "tools/experiments/trial/dataset_content.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRecipe = "recipe";
constexpr const char* kDatasetBytes = "dataset_bytes";
constexpr const char* kDatasetNames = "dataset_names";
constexpr const char* kDatasetFingerprints = "dataset_fingerprints";
constexpr const char* kDatasetChecksums = "dataset_checksums";
constexpr const char* kPluginHashes = "plugin_hashes";
/// Facts about files other than the recipe. Each is an object, with a value for each file or key.
constexpr const char* kFileFacts[] = {kDatasetBytes, kDatasetNames, kDatasetFingerprints,
                                      kDatasetChecksums, kPluginHashes};

bool is_about_files(std::string_view fact) {
  return std::ranges::find(kFileFacts, fact) != std::ranges::end(kFileFacts);
}

/// Adds the names of the datasets, by key, and their sizes and hashes if they are known.
void add_datasets(const Trial& trial, ordered_json& facts) {
  Diagnostics ignored;  // the trial reports mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(trial.recipe, ignored).sections;
  for (const char* fact : {kDatasetBytes, kDatasetNames, kDatasetFingerprints, kDatasetChecksums})
    facts[fact] = ordered_json::object();
  for (const std::string_view key : kDatasetKeys) {
    const ConfigNode files = value_of(key, recipe, trial.settings);
    if (files.kind == ConfigNode::Kind::null) continue;
    const std::string name(key);
    facts[kDatasetNames][name] = dataset_names(files);
    if (const auto bytes = dataset_bytes(files)) facts[kDatasetBytes][name] = *bytes;
    const auto content = dataset_content(files);
    if (!content) continue;
    facts[kDatasetFingerprints][name] = content->fingerprint;
    if (!content->checksums.empty()) facts[kDatasetChecksums][name] = content->checksums;
  }
}

ordered_json facts_of(const Trial& trial) {
  ordered_json facts = {{kRecipe, recipe_hash(trial.recipe)}};
  for (const Setting& setting : trial.settings) {
    if (changes_results(setting)) facts[setting.key] = setting.value;
  }
  add_datasets(trial, facts);
  facts[kPluginHashes] = plugin_hashes(trial.recipe, trial.settings);
  return facts;
}

/// Describes the first dataset with another name, size or content, or the first plug-in with other
/// contents; empty if there is none. A file in another folder is the same dataset. Earlier versions
/// did not record all of these facts.
std::string changed_file(const ordered_json& before, const ordered_json& now) {
  for (const char* fact : kFileFacts) {
    if (!before.contains(fact)) continue;
    for (const auto& [key, value] : now.at(fact).items()) {
      const auto old = before.at(fact).find(key);
      if (old != before.at(fact).end() && *old != value)
        return fmt::format("{}: {} was {} and is now {}", key, fact, old->dump(), value.dump());
    }
  }
  return {};
}

/// Describes the first difference between `before` and the trial as it is now; empty if there is
/// none.
std::string change_since(const ordered_json& before, const Trial& trial) {
  const ordered_json now = facts_of(trial);
  const auto text = [](const ordered_json& facts, const std::string& key) {
    return facts.contains(key) ? facts.at(key).get<std::string>() : "the recipe's value";
  };
  ordered_json keys = before;
  keys.update(now);
  for (const auto& [key, value] : keys.items()) {
    if (is_about_files(key) || text(before, key) == text(now, key)) continue;
    // Earlier versions also recorded keys that change no results.
    if (!changes_results({key, ""})) continue;
    if (key == kRecipe) return fmt::format("the recipe {} has changed", trial.recipe.string());
    return fmt::format("{} was {} and is now {}", key, text(before, key), text(now, key));
  }
  return changed_file(before, now);
}

}  // namespace

JobFile::JobFile(const std::filesystem::path& folder) : path_(folder / "reproduce.json") {
  std::ifstream file(path_);
  if (!file) return;
  trials_ = ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!trials_.is_object()) {
    throw ConfigError(fmt::format(
        "{}: expected a JSON object, got other content. Give another --folder", path_.string()));
  }
}

void JobFile::check(const Trial& trial) const {
  const auto found = trials_.find(trial.id);
  if (found == trials_.end()) return;
  if (const std::string change = change_since(*found, trial); !change.empty()) {
    throw ConfigError(
        fmt::format("{}: expected the recipe, keys, plug-ins and datasets with which {} was "
                    "started, but {}. Give another --folder",
                    path_.parent_path().string(), trial.id, change));
  }
}

void JobFile::snapshot(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) snapshots_[trial.id] = facts_of(trial);
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

void JobFile::record_start(const Trial& trial) {
  check(trial);
  if (trials_.contains(trial.id)) return;
  const ordered_json& snapshot = snapshots_.at(trial.id);
  if (const std::string change = change_since(snapshot, trial); !change.empty()) {
    throw ConfigError(
        fmt::format("{}: expected the recipe, plug-ins and datasets that {} had when this command "
                    "started, but {}. Give another --folder",
                    path_.parent_path().string(), trial.id, change));
  }
  trials_[trial.id] = snapshot;
  write_file(path_, json_text(trials_));
}

std::optional<std::vector<Setting>> JobFile::settings_of(const std::string& trial) const {
  const auto found = trials_.find(trial);
  if (found == trials_.end()) return std::nullopt;
  std::vector<Setting> settings;
  for (const auto& [key, value] : found->items()) {
    if (key != kRecipe && !is_about_files(key)) settings.push_back({key, value.get<std::string>()});
  }
  return settings;
}

}  // namespace precast::tools
