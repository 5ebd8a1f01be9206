#pragma once

#include "framework/core/export.h"

namespace precast {

/// The environment variable with the descriptor number of the read end of a pipe whose write end
/// only the launcher holds.
inline constexpr const char* kLauncherPipeVariable = "PRECAST_LAUNCHER_PIPE";

/// For a program that launch() may have started: call it at the start of main(), before there are
/// threads. A thread then ends the process with _exit(ExitCode::peer_failed) as soon as the
/// launcher is gone, even by SIGKILL. Removes the variable from the environment and does not pass
/// the pipe to programs that this one starts. (PR_SET_PDEATHSIG is no alternative: it would have to
/// be set between fork and exec, and it sends the signal when the launcher's thread that started
/// the program ends, not when its process ends.)
/// @return false if no launcher started this program.
PRECAST_API bool watch_launcher();

}  // namespace precast
