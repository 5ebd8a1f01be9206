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
  /// The address of the store through which the ranks find each other; passed on as PRECAST_STORE.
  std::string store_address = "127.0.0.1";
  int store_port = 0;
  /// Passed on as OMP_NUM_THREADS, unless it is 0 or that variable is already set.
  int threads_per_process = 0;
  /// How long the other ranks may take to end after a rank has failed; then they are killed.
  std::chrono::milliseconds grace{15'000};
  /// Called once, in the thread of launch(), when the first rank fails, with a cause such as `rank
  /// 1 (pid 123) was killed by signal 9 (SIGKILL)`; use it to inform the ranks that wait for the
  /// failed rank. It must return quickly, because nothing is forwarded or killed while it runs.
  std::function<void(int rank, const std::string& cause)> on_failure;
};

/// Starts the processes, passes on their output, and returns when all of them have ended and have
/// been reaped. README.md describes the protocol.
///
/// Forwards SIGTERM, SIGINT and SIGUSR1 to every living child, and SIGHUP as SIGTERM; a second
/// SIGINT kills the children. SIGTSTP (Ctrl-Z) suspends the children and this process, and SIGCONT
/// resumes them; the time between the two does not count towards `grace`. A SIGHUP (nohup) or
/// SIGTSTP that this process ignores stays ignored, also in the children; the other signals are
/// handled even if it ignores them. The handlers are restored at the end. Only one launch() may run
/// in a process at a time.
///
/// @return the exit code of the first rank that failed; ExitCode::peer_failed counts only if no
/// rank failed with a different code. The code of a rank that a signal killed is 128 + the signal,
/// as in a shell. Without failures: 128 + SIGINT after a second SIGINT, ExitCode::preempted if any
/// rank ended with it, else 0.
/// @throws IoError if a process cannot be started; no process is then left running.
[[nodiscard]] PRECAST_API int launch(const LaunchOptions& options);

}  // namespace precast
