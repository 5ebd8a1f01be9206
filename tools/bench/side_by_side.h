#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// The work of one process. `number` is the index of the process, from 0. The function prepares its
/// measurement, calls `start` once, then measures and returns its result. `start` returns when all
/// processes are ready.
using SideBySideWork = std::function<std::string(int number, const std::function<void()>& start)>;

/// Forks several processes that run `work` at the same time, and returns the result of each. They
/// are killed if this process ends. @param on_wait called several times a second until they are
/// done.
/// @throws Error with the message and the exit code of the first process that threw, exited or was
/// killed; IoError if a process cannot be started. Call only from a process with one thread.
[[nodiscard]] std::vector<std::string> run_side_by_side(int processes, const SideBySideWork& work,
                                                        const std::function<void()>& on_wait);

}  // namespace precast::tools
