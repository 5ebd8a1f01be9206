#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// The file reproduce.json of a folder. It records the recipe and keys with which each trial was
/// started, so that results of different recipes or keys are never mixed. Keys for the location of
/// data and runs may change.
/// Not thread-safe.
class JobFile {
 public:
  /// @throws ConfigError if the existing file is not such a job file.
  explicit JobFile(const std::filesystem::path& folder);

  /// @throws ConfigError naming the trial and the difference if it was started with different keys.
  void check(const Trial& trial) const;
  /// Records a trial that begins. @throws IoError
  void note(const Trial& trial);
  /// The keys with which a trial was started; nothing if it was not started.
  [[nodiscard]] std::optional<std::vector<Setting>> settings_of(const std::string& trial) const;

 private:
  std::filesystem::path path_;
  nlohmann::ordered_json trials_ = nlohmann::ordered_json::object();
};

}  // namespace precast::tools
