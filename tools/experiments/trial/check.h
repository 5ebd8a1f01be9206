#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// An error of a trial, as a message.
struct TrialProblem {
  const Trial* trial = nullptr;
  std::string text;
};

/// Runs `program train --dry-run` on the recipe of each trial with its settings, `at_once` trials
/// at a time but no more than 16. @param text formats a problem; several trials may have the same
/// text. @throws ConfigError with all problems, each text once. @throws IoError if a program cannot
/// be started.
void check_by_dry_run(
    const std::vector<const Trial*>& trials, const std::filesystem::path& program,
    std::size_t at_once,
    const std::function<std::string(const TrialProblem&)>& text = [](const TrialProblem& problem) {
      return problem.text;
    });

}  // namespace precast::tools
