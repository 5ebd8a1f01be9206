#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace precast::tools {

/// The epochs in the `log` of a run so far; the run may still be in progress. A run that is resumed
/// truncates its log to the checkpoint, and then writes the later epochs again. Not thread-safe.
class RunLog {
 public:
  explicit RunLog(const std::filesystem::path& run_folder) : path_(run_folder / "log") {}

  /// Reads new lines. @return true if there were any.
  bool refresh();
  /// Records of complete epochs (top_1, val_loss, train_loss ...), by epoch from 0.
  [[nodiscard]] const std::map<std::int64_t, nlohmann::ordered_json>& epochs() const {
    return epochs_;
  }
  /// The newest record of a step (logging.every); null if there is none.
  [[nodiscard]] const nlohmann::ordered_json& last_step() const { return last_step_; }

 private:
  void read_line(const std::string& line);
  /// Whether the last line that was read is still at the same position of the file.
  [[nodiscard]] bool is_unchanged(std::ifstream& file) const;

  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  std::string last_line_;
  std::map<std::int64_t, nlohmann::ordered_json> epochs_;
  nlohmann::ordered_json last_step_;
};

}  // namespace precast::tools
