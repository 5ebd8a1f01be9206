#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// The result of a finished program.
struct ChildResult {
  /// Exit code; 128 + n after signal n; 127 if it could not be started.
  int exit_code = 0;
  bool timed_out = false;
  std::string output;
  std::string errors;
};

/// Runs `arguments[0]` (a path; no shell, no search in PATH) with no standard input and collects
/// what it prints, at most 1 MB of each stream. Kills it after `timeout`. @throws IoError if a pipe
/// cannot be created.
[[nodiscard]] PRECAST_API ChildResult run_child(const std::vector<std::string>& arguments,
                                                std::chrono::milliseconds timeout);

}  // namespace precast
