#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/slot.h"

namespace precast::tools {

/// How a process ended.
struct ProcessEnd {
  int exit_code = 0;
  /// The signal that killed it; 0: none.
  int signal = 0;
  double seconds = 0;
  /// User and system time of the process and of the children it waited for.
  double cpu_seconds = 0;
};

/// A program in a slot: bound to its cores and its GPU, with its output appended to a file, and
/// leader of a process group (a terminal's Ctrl-C reaches only this process, which passes it on).
/// It gets SIGKILL when the thread that started it ends, so that no trial continues unnoticed after
/// kill -9 of this process. Not thread-safe.
class TrialProcess {
 public:
  /// Starts `command[0]` (a path; PATH is not searched). Exit code 127 means that it could not be
  /// started; the reason is in the output. @param lock_fd inherited, so that a FileLock is held as
  /// long as the program lives. @throws IoError
  TrialProcess(const std::vector<std::string>& command, const Slot& slot,
               const std::filesystem::path& output, int lock_fd);
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;
  /// Kills it if it is still running.
  ~TrialProcess();

  /// Sends SIGTERM: a training run then saves and ends with 85.
  void ask_to_stop() const;
  /// Sends SIGKILL to its whole process group.
  void kill() const;
  /// Checks without waiting whether it has ended. @return nothing while it is running.
  [[nodiscard]] std::optional<ProcessEnd> poll();
  [[nodiscard]] double seconds() const;

 private:
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point start_;
  std::optional<ProcessEnd> end_;
};

}  // namespace precast::tools
