#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "tools/trial/trial.h"

namespace precast::tools {

/// Something that is wrong with a trial, in words.
struct TrialProblem {
  const Trial* trial = nullptr;
  std::string text;
};

/// Lets `program train --dry-run` read the recipe of each trial with its settings, some at once,
/// and tells what it finds wrong, line by line. @throws IoError if a program cannot be started.
[[nodiscard]] std::vector<TrialProblem> dry_run_problems(const std::vector<const Trial*>& trials,
                                                         const std::filesystem::path& program,
                                                         std::size_t at_once);

}  // namespace precast::tools
