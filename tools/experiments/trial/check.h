#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// An error message of a trial's dry run, or its warning about a key that no trial reads.
struct TrialProblem {
  const Trial* trial = nullptr;
  std::string text;
};

/// Whether a setting that has no effect in any of the trials is a warning or an error.
enum class UnreadSettings { warn, refuse };

/// Runs `program train --dry-run` on the recipe of each trial with its settings, for `at_once`
/// trials at the same time (at most 16). @param text formats a problem; problems of several trials
/// may get the same text. @throws ConfigError with the texts of all problems, each text once;
/// IoError if a program cannot be started.
void check_by_dry_run(
    const std::vector<const Trial*>& trials, const std::filesystem::path& program,
    std::size_t at_once, UnreadSettings unread,
    const std::function<std::string(const TrialProblem&)>& text = [](const TrialProblem& problem) {
      return problem.text;
    });

}  // namespace precast::tools
