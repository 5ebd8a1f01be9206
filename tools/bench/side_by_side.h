#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// What one of several processes does. `number` counts them from 0. It prepares itself, calls
/// `start` once, which returns when all of them have called it, and returns what it has to tell.
using SideBySideWork = std::function<std::string(int number, const std::function<void()>& start)>;

/// Runs `work` in that many processes at once, forked from this one, and returns what each told.
/// They end with this process. @param waiting called some times a second until they are done.
/// @throws Error with the message and the exit code of the first one that threw or was killed;
/// IoError if no process can be started. Only for a process with one thread.
[[nodiscard]] std::vector<std::string> run_side_by_side(int processes, const SideBySideWork& work,
                                                        const std::function<void()>& waiting);

}  // namespace precast::tools
