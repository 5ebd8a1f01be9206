#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// The events of a job's trials, one JSON object per line, append-only. A record is on disk when
/// append() returns.
///
/// `{"event": "start", "trial", "attempt", "slot", "output_bytes", "time"}` before a process is
/// started (`output_bytes`: the size of the run folder's file `output` at that time), and
/// `{"event": "end", "trial", "attempt", "status", "exit_code", "signal", "failure", "seconds",
/// "cpu_seconds", "figures", "settings", "time"}` after it has ended; `figures` only if the trial
/// is done. If no job saw the end, the record has `"end_unseen": true`, and unknown values are
/// missing. Times are Unix seconds. Jobs add their own events (grid/occupancy.h, grid/watcher.h).
/// Not thread-safe.
class Journal {
 public:
  /// Creates the file if it is missing; removes an incomplete last line that a crash left.
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

/// Returns the records of all files `results*.jsonl` in `folder`, sorted by time. The records of
/// one file keep their order, even if the clock was set back. Complete lines that are not JSON
/// objects are skipped with a warning. An incomplete last line is ignored: a crash truncated it, or
/// it is still being written.
/// @param warns false for callers that read the records repeatedly.
[[nodiscard]] std::vector<nlohmann::ordered_json> read_journals(const std::filesystem::path& folder,
                                                                bool warns = true);

enum class TrialStatus {
  /// Not started, interrupted, or to be retried.
  waiting,
  done,
  diverged,
  failed,
  /// Stopped by an early-stopping rule; it could continue.
  stopped,
};
/// The name of a status in the records: `waiting`, `done` ...
[[nodiscard]] std::string_view name_of(TrialStatus status);

/// The state of one trial according to the records.
struct TrialState {
  TrialStatus status = TrialStatus::waiting;
  /// Number of recorded starts.
  int starts = 0;
  /// Number of processes that failed for a reason that may be temporary.
  int failures = 0;
  /// The position in the run folder's file `output` at which the output of the last process starts.
  std::uintmax_t output_begin = 0;
  /// The exit code of the last recorded end.
  int exit_code = 0;
  /// Wall-clock and processor time, summed over all starts with a recorded end.
  double seconds = 0;
  double cpu_seconds = 0;
  /// Time of the last start in Unix seconds; 0 if its end is recorded, or if the trial was never
  /// started.
  double open_since = 0;
  /// The result of read_summary() for a finished trial.
  nlohmann::ordered_json figures;

  void apply(const nlohmann::ordered_json& record);
};

[[nodiscard]] std::map<std::string, TrialState> fold_states(
    const std::vector<nlohmann::ordered_json>& records);
/// Sets permanently failed trials back to `waiting`, so that they are run again.
void reset_failures(std::map<std::string, TrialState>& states);

}  // namespace precast::tools
