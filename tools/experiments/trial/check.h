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

/// Runs `program train --dry-run` on the recipe of each trial with its settings. `at_once` trials
/// are checked at the same time, but no more than 16. A setting that has no effect in any of the
/// trials is a problem, too, unless `unread` is `warn`. @param text formats a problem; problems of
/// several trials may get the same text. @throws ConfigError with the texts of all problems, each
/// text once; IoError if a program cannot be started.
enum class UnreadSettings { warn, refuse };
void check_by_dry_run(
    const std::vector<const Trial*>& trials, const std::filesystem::path& program,
    std::size_t at_once, UnreadSettings unread,
    const std::function<std::string(const TrialProblem&)>& text = [](const TrialProblem& problem) {
      return problem.text;
    });

}  // namespace precast::tools
