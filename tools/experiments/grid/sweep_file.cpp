#include "tools/experiments/grid/sweep_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_file.h"
#include "tools/experiments/trial/dataset_content.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRecipeHash = "recipe_hash";
constexpr const char* kDatasetBytes = "dataset_bytes";
constexpr const char* kDatasetNames = "dataset_names";
constexpr const char* kDatasetFingerprints = "dataset_fingerprints";
constexpr const char* kDatasetChecksums = "dataset_checksums";
constexpr const char* kPluginHashes = "plugin_hashes";
constexpr const char* kChecked = "checked";
constexpr const char* kCheckedWithGpu = "checked_with_gpu";

struct Dataset {
  /// The name under which sweep.json records the dataset. If all trials use the same dataset, this
  /// is the recipe's key, so that the files may be moved; if trials differ in the dataset, it is
  /// the same text as `files`.
  std::string name;
  std::string files;
  std::string file_names;  // dataset_names()
  std::optional<std::uintmax_t> bytes;
  DatasetContent content;  // a member is empty if it is unknown
};

/// Whether the dataset has other hashes than `facts`, which may lack some of them.
bool has_other_content(const Dataset& dataset, const ordered_json& facts) {
  const auto differs = [&](const char* fact, const std::string& now) {
    return !now.empty() && facts.at(fact).value(dataset.name, now) != now;
  };
  return differs(kDatasetFingerprints, dataset.content.fingerprint) ||
         differs(kDatasetChecksums, dataset.content.checksums);
}

/// The sweep's datasets, as the sweep or the recipe names them.
std::vector<Dataset> datasets_of(const Sweep& sweep) {
  Diagnostics ignored;  // the trials report mistakes in the recipe
  const ConfigNode recipe = read_recipe_file(sweep.recipe, ignored).sections;
  std::vector<Dataset> datasets;
  const auto add = [&](std::string name, const ConfigNode& files) {
    if (files.kind == ConfigNode::Kind::null) return;
    datasets.push_back({std::move(name), files.flow(), dataset_names(files), dataset_bytes(files),
                        dataset_content(files).value_or(DatasetContent{})});
  };
  for (const std::string_view key : kDatasetKeys) {
    const auto axis = std::ranges::find(sweep.axes, key, &SweepAxis::key);
    if (axis == sweep.axes.end()) {
      add(std::string(key), value_of(key, recipe, {}));
      continue;
    }
    const bool varies = std::ranges::find(sweep.varied, key) != sweep.varied.end();
    for (const AxisValue& value : axis->values) {
      const ConfigNode files = value_of(key, recipe, {{axis->key, value.text}});
      add(varies ? files.flow() : axis->key, files);
    }
  }
  return datasets;
}

/// The plug-ins of all trials, in the form of plugin_hashes().
ordered_json plugins_of(const Sweep& sweep) {
  const auto axis = std::ranges::find(sweep.axes, "plugins", &SweepAxis::key);
  if (axis == sweep.axes.end()) return plugin_hashes(sweep.recipe, {});
  auto hashes = ordered_json::object();
  for (const AxisValue& value : axis->values)
    hashes.update(plugin_hashes(sweep.recipe, {{axis->key, value.text}}));
  return hashes;
}

/// The name of a trial in the list `checked`. Unlike Trial::id, it depends on all settings, because
/// a key that changes no result can still be invalid.
std::string checked_name(const Trial& trial) {
  return trial_id(trial.settings);
}

}  // namespace

SweepFile::SweepFile(const Sweep& sweep) : sweep_(sweep), path_(sweep.folder / "sweep.json") {
  facts_ = {{"recipe", sweep.recipe.string()}, {kRecipeHash, recipe_hash(sweep.recipe)}};
  std::ifstream file(path_);
  ordered_json stored;
  if (file) stored = ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (stored.is_object() && stored.contains(kRecipeHash)) facts_ = stored;
  if (!facts_[kChecked].is_array()) facts_[kChecked] = ordered_json::array();
  // Earlier versions did not record all of these.
  for (const char* key :
       {kDatasetBytes, kDatasetNames, kDatasetFingerprints, kDatasetChecksums, kPluginHashes})
    if (!facts_[key].is_object()) facts_[key] = ordered_json::object();
  check();
  for (const Dataset& dataset : datasets_of(sweep)) {
    facts_[kDatasetNames][dataset.name] = dataset.file_names;
    if (dataset.bytes) facts_[kDatasetBytes][dataset.name] = *dataset.bytes;
    const auto& [fingerprint, checksums] = dataset.content;
    if (!fingerprint.empty()) facts_[kDatasetFingerprints][dataset.name] = fingerprint;
    if (!checksums.empty()) facts_[kDatasetChecksums][dataset.name] = checksums;
  }
  facts_[kPluginHashes].update(plugins_of(sweep));
  is_written_ = facts_ == stored;
}

void SweepFile::check() const {
  if (facts_.at(kRecipeHash) != recipe_hash(sweep_.recipe)) {
    throw ConfigError(fmt::format(
        "{}: expected the recipe that the results in {} belong to, got {}, which is "
        "another recipe or was changed after the grid was started. Set `folder` to another folder",
        sweep_.path.string(), sweep_.folder.string(), sweep_.recipe.string()));
  }
  const ordered_json plugins = plugins_of(sweep_);
  for (const auto& [plugin, hash] : plugins.items()) {
    if (facts_.at(kPluginHashes).value(plugin, hash) == hash) continue;
    throw ConfigError(fmt::format(
        "{}: expected the plug-ins that the results in {} belong to, got another build of {}. Set "
        "`folder` to another folder",
        sweep_.path.string(), sweep_.folder.string(), plugin));
  }
  const ordered_json& sizes = facts_.at(kDatasetBytes);
  for (const Dataset& dataset : datasets_of(sweep_)) {
    auto size = sizes.find(dataset.name);
    if (size == sizes.end()) size = sizes.find(dataset.files);  // as in earlier versions
    const bool same_size = size == sizes.end() || !dataset.bytes || *size == *dataset.bytes;
    const std::string names = facts_.at(kDatasetNames).value(dataset.name, dataset.file_names);
    const bool other_content = has_other_content(dataset, facts_);
    if (same_size && !other_content && names == dataset.file_names) continue;
    const std::string before =
        size == sizes.end() ? "unknown size" : fmt::format("{} bytes", size->dump());
    const std::string now =
        dataset.bytes ? fmt::format("{} bytes", *dataset.bytes) : "unknown size";
    throw ConfigError(fmt::format(
        "{}: expected the datasets that the results in {} belong to, {} ({}), got {} ({}{}). Set "
        "`folder` to another folder",
        sweep_.path.string(), sweep_.folder.string(), names, before, dataset.files, now,
        other_content ? ", other content" : ""));
  }
}

void SweepFile::ensure_written() {
  if (!is_written_) write();
}

void SweepFile::discard_stale_checks(const std::vector<Slot>& slots) {
  const bool with_gpu = !slots.front().gpu.empty();
  if (facts_[kCheckedWithGpu] == with_gpu) return;
  facts_[kCheckedWithGpu] = with_gpu;
  facts_[kChecked] = ordered_json::array();
}

bool SweepFile::is_checked(const Trial& trial) const {
  const auto& checked = facts_.at(kChecked);
  return std::find(checked.begin(), checked.end(), checked_name(trial)) != checked.end();
}

void SweepFile::add_checked(const std::vector<const Trial*>& trials) {
  for (const Trial* trial : trials) facts_[kChecked].push_back(checked_name(*trial));
  write();
}

void SweepFile::write() {
  write_file(path_, json_text(facts_));
  is_written_ = true;
}

}  // namespace precast::tools
