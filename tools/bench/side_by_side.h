#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// The work of one of several processes. `number` counts them from 0. It prepares its measurement,
/// calls `start` once, which returns when all processes have called it, measures, and returns its
/// result.
using SideBySideWork = std::function<std::string(int number, const std::function<void()>& start)>;

/// Runs `work` in several processes at once, forked from this one, and returns the result of each.
/// They end when this process ends. @param waiting called several times a second until they are
/// done.
/// @throws Error with the message and the exit code of the first one that threw or was killed;
/// IoError if a process cannot be started. Call only from a process with one thread.
[[nodiscard]] std::vector<std::string> run_side_by_side(int processes, const SideBySideWork& work,
                                                        const std::function<void()>& waiting);

}  // namespace precast::tools
