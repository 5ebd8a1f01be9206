#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/trial/slot.h"

namespace precast::tools {

/// How a process has ended.
struct ProcessEnd {
  /// 128 + N if signal N killed the process.
  int exit_code = 0;
  /// The signal that killed the process; 0: none.
  int signal = 0;
  double seconds = 0;
  /// User and system time of the process and of the children it waited for.
  double cpu_seconds = 0;
};

/// A program that runs in a slot. It is bound to the slot's cores and GPU, and its output is
/// appended to a file. The program leads its own process group, so that a terminal's Ctrl-C reaches
/// only the parent, which then asks the program to stop. The program receives SIGKILL when the
/// thread that started it ends, so that no trial continues unnoticed if the parent is killed. Not
/// thread-safe.
class TrialProcess {
 public:
  /// Starts `command[0]` (a path; PATH is not searched). Exit code 127 means that the program could
  /// not be started; the reason is in the output. @param lock_fd the descriptor of a FileLock,
  /// which the program inherits, so that the lock is held as long as the program runs; -1: none.
  /// @throws IoError
  TrialProcess(const std::vector<std::string>& command, const Slot& slot,
               const std::filesystem::path& output, int lock_fd);
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;
  /// Kills the program if it is still running.
  ~TrialProcess();

  /// Sends SIGTERM. A training run then saves a checkpoint and ends with exit code 85.
  void request_stop() const;
  /// Sends SIGKILL to the program's process group.
  void kill() const;
  /// Checks without waiting whether the program has ended. @return nothing while it is running.
  [[nodiscard]] std::optional<ProcessEnd> poll();
  /// Time since the start.
  [[nodiscard]] double seconds() const;

 private:
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point start_;
  std::optional<ProcessEnd> end_;
};

}  // namespace precast::tools
