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
  /// What killed it; 0: nothing.
  int signal = 0;
  double seconds = 0;
  /// User and system time of the process and of what it started and waited for.
  double cpu_seconds = 0;
};

/// A program in a slot: bound to its cores and its GPU, output appended to a file, leader of a
/// process group of its own (a terminal's Ctrl-C reaches us alone, and we pass it on). It dies with
/// the thread that started it, by SIGKILL, so that nothing trains on unseen after kill -9 of ours.
/// One thread.
class TrialProcess {
 public:
  /// Starts `command[0]` (a path; no search). Code 127 tells that it could not be started, why is
  /// in the output. @param lock_fd inherited, so that a FileLock holds as long as the program
  /// lives. @throws IoError
  TrialProcess(const std::vector<std::string>& command, const Slot& slot,
               const std::filesystem::path& output, int lock_fd);
  TrialProcess(const TrialProcess&) = delete;
  TrialProcess& operator=(const TrialProcess&) = delete;
  /// Kills it if it still lives.
  ~TrialProcess();

  /// SIGTERM: a training then saves and ends with 85.
  void ask_to_stop() const;
  /// SIGKILL to its whole group.
  void kill() const;
  /// Does not wait. @return nothing while it lives.
  [[nodiscard]] std::optional<ProcessEnd> poll();
  [[nodiscard]] double seconds() const;

 private:
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point start_;
  std::optional<ProcessEnd> end_;
};

}  // namespace precast::tools
