#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// The processes that launch() starts on this host.
struct LaunchOptions {
  /// A program (a path; no shell, no search in PATH) and its arguments, the same for every rank.
  std::vector<std::string> command;
  int processes = 1;
  /// Where the ranks meet; passed on as PRECAST_STORE.
  std::string store_address = "127.0.0.1";
  int store_port = 0;
  /// Passed on as OMP_NUM_THREADS unless that is already set; 0 leaves it unchanged.
  int threads_per_process = 0;
  /// How long the other ranks may take to end once one has failed; after that they are killed.
  std::chrono::milliseconds grace{15'000};
  /// Called once, in the thread of launch(), when the first rank fails, with a cause such as `rank
  /// 1 (pid 123) was killed by signal 9 (SIGKILL)`; use it to inform ranks that wait for the failed
  /// one. Nothing is forwarded or killed while it runs, so it must return quickly.
  std::function<void(int rank, const std::string& cause)> on_failure;
};

/// Starts the processes, passes on their output, and returns when all of them have ended and have
/// been reaped. README.md describes the protocol.
///
/// SIGTERM, SIGINT and SIGUSR1 are forwarded once to every living child, SIGHUP as SIGTERM; a
/// second SIGINT kills them. SIGTSTP (Ctrl-Z) suspends all, and SIGCONT continues them. Signals
/// that this process ignores stay ignored. The handlers are restored at the end. One launch at a
/// time in a process.
///
/// @return the exit code: that of the first rank that failed, where ExitCode::peer_failed counts
/// only if no rank failed with a different code. The code of a rank that was killed by a signal is
/// ExitCode::failed, or 128 + the signal if that signal had been sent to the launcher. Without
/// failures, ExitCode::preempted if any rank ended with it, else 0.
/// @throws IoError if a process cannot be started; no process is then left running.
[[nodiscard]] PRECAST_API int launch(const LaunchOptions& options);

}  // namespace precast
