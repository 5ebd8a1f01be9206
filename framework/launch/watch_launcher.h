#pragma once

#include "framework/core/export.h"

namespace precast {

/// The environment variable that contains the descriptor number of a pipe's read end. Only the
/// launcher holds the write end.
inline constexpr const char* kLauncherPipeVariable = "PRECAST_LAUNCHER_PIPE";

/// Starts a thread that ends the process with _exit(ExitCode::peer_failed) as soon as the launcher
/// has ended, even if SIGKILL ended it. Call it at the start of main(), before there are threads,
/// in every program that launch() may start. Removes the variable from the environment, and does
/// not pass the pipe to programs that this program starts. (PR_SET_PDEATHSIG is no alternative: it
/// would have to be set between fork and exec, and it would send the signal when the launcher's
/// thread that started the program ends, not when the launcher's process ends.)
/// @return false if no launcher started this program.
PRECAST_API bool watch_launcher();

}  // namespace precast
