#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// The result of run_child().
struct ChildResult {
  /// The exit code; 128 + n if signal n ended the program; 127 if it could not be started.
  int exit_code = 0;
  bool timed_out = false;
  std::string output;
  std::string errors;
};

/// Runs `arguments[0]` (a path; no shell, no search in PATH) with /dev/null as standard input and
/// collects its output, at most `max_bytes` of each stream. After `timeout`, or within about 0.1 s
/// of `*stop` becoming true, kills the program and all its descendants, except processes whose
/// parent had already exited (they are no longer in the program's process tree). @throws IoError if
/// a pipe cannot be created.
[[nodiscard]] PRECAST_API ChildResult run_child(const std::vector<std::string>& arguments,
                                                std::chrono::milliseconds timeout,
                                                std::size_t max_bytes = 1'000'000,
                                                const std::atomic<bool>* stop = nullptr);

}  // namespace precast
