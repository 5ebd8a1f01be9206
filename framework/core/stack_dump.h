#pragma once

#include "framework/core/export.h"

namespace precast {

/// Writes the call stack of every thread of the process to a file descriptor, one after another,
/// with the threads' names. Interrupts each thread with a signal (SIGRTMIN + 5); the previous
/// handler of this signal is not restored. If a thread does not respond within a second, its name
/// is printed and its stack is skipped. Use it only in a process that is about to end.
PRECAST_API void dump_all_stacks(int fd);

}  // namespace precast
