#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// reproduce.json of a folder: by which recipe and keys its trials were begun, so that results of
/// different ones are never mixed. Keys that say where data and runs lie may change. One thread.
class JobFile {
 public:
  /// @throws ConfigError if the file there is not one of these.
  explicit JobFile(const std::filesystem::path& folder);

  /// @throws ConfigError naming the trial and what has changed if it was begun otherwise.
  void check(const Trial& trial) const;
  /// Notes a trial that begins. @throws IoError
  void note(const Trial& trial);
  /// The keys of a trial that was begun.
  [[nodiscard]] std::optional<std::vector<Setting>> settings_of(const std::string& trial) const;

 private:
  std::filesystem::path path_;
  nlohmann::ordered_json trials_ = nlohmann::ordered_json::object();
};

}  // namespace precast::tools
