#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// What happened to the trials of a job, one JSON object a line, only ever appended to. A record is
/// on the disk when append() returns.
///
/// `{"event": "start", "trial", "attempt", "slot", "time"}` before a process is started, and
/// `{"event": "end", "trial", "attempt", "status", "exit_code", "signal", "seconds", "cpu_seconds",
/// "settings", "figures", "time"}` after it has ended. Times are Unix seconds. Jobs add events of
/// their own (grid/occupancy.h, grid/watcher.h). One thread.
class Journal {
 public:
  /// Creates the file where it is missing; cuts off a last line that a crash left torn.
  /// @throws IoError
  explicit Journal(std::filesystem::path path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();
  /// @throws IoError
  void append(const nlohmann::ordered_json& record);

 private:
  std::filesystem::path path_;
  int fd_;
};

/// The records of every file `results*.jsonl` of `folder`, by time. Whole lines that are no JSON
/// objects are passed over with a warning; a last one without its end is torn by a crash, or still
/// being written. @param warns false for those who read them again and again.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_journals(const std::filesystem::path& folder,
                                                                bool warns = true);

enum class TrialStatus {
  /// Not started, interrupted, or to be tried again.
  waiting,
  done,
  diverged,
  failed,
  /// By an early-stopping rule; it could go on.
  stopped,
};
/// `waiting`, `done` ...: as in records.
[[nodiscard]] std::string_view name_of(TrialStatus status);

/// What the records say of one trial.
struct TrialState {
  TrialStatus status = TrialStatus::waiting;
  /// Processes started so far.
  int starts = 0;
  /// Those that ended with a failure that is tried again.
  int failures = 0;
  /// Of the last end.
  int exit_code = 0;
  /// Wall-clock and processor time over all starts whose end was seen.
  double seconds = 0;
  double cpu_seconds = 0;
  /// When a start without an end was, Unix seconds; 0: there is none.
  double open_since = 0;
  /// summary.json of a trial that is done.
  nlohmann::ordered_json figures;

  void apply(const nlohmann::ordered_json& record);
};

[[nodiscard]] std::map<std::string, TrialState> fold_states(
    const std::vector<nlohmann::ordered_json>& records);
/// Lets trials that have failed for good wait again.
void forget_failures(std::map<std::string, TrialState>& states);

}  // namespace precast::tools
