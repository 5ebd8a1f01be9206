#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// The file reproduce.json of a folder. It records the recipe, the keys, hashes of the plug-ins,
/// and the file names, sizes and hashes (dataset_content()) of the datasets with which each trial
/// was started, so that results of different recipes, keys, plug-ins or datasets are never mixed.
/// Keys that do not change results (changes_results()) may change, and datasets may be moved to
/// another folder. Not thread-safe.
class JobFile {
 public:
  /// Reads the file if it exists. @throws ConfigError if it is not a JSON object.
  explicit JobFile(const std::filesystem::path& folder);

  /// Checks that a trial that was started before still has the same recipe, keys, plug-ins and
  /// datasets (name, size and content). @throws ConfigError naming the trial and the difference
  void check(const Trial& trial) const;
  /// Whether the trial was started with another recipe, or its recipe cannot be read any more.
  [[nodiscard]] bool has_other_recipe(const Trial& trial) const;
  /// Stores the current recipes, keys, plug-ins and datasets of these trials for record_start().
  void snapshot(const std::vector<Trial>& trials);
  /// Records a trial at its first start. Call it before every start, because each start reads the
  /// recipe's file again. @pre snapshot() was called with the trial. @throws ConfigError naming the
  /// trial and the difference if its recipe, plug-ins or datasets have changed since snapshot() or
  /// an earlier start; IoError
  void record_start(const Trial& trial);
  /// The settings that the file records for a trial; nothing if the trial was not started.
  [[nodiscard]] std::optional<std::vector<Setting>> settings_of(const std::string& trial) const;

 private:
  std::filesystem::path path_;
  nlohmann::ordered_json trials_ = nlohmann::ordered_json::object();
  nlohmann::ordered_json snapshots_ = nlohmann::ordered_json::object();
};

}  // namespace precast::tools
