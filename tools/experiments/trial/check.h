#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "tools/experiments/trial/slot.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// An error message of a trial's dry run, or a key without effect that the dry run listed.
struct TrialProblem {
  const Trial* trial = nullptr;
  std::string text;
  ExitCode exit_code = ExitCode::usage;
};

/// Whether a setting that has no effect in any of the trials is a warning or an error. Keys that
/// only the recipe's file contains are not reported.
enum class UnreadSettings { warn, reject };

/// Chooses further trials to check when the keys `unread` have no effect in any of the trials
/// `checked`. @return an empty vector if it is certain that the keys have no effect in any other
/// trial either; nothing if too many checks would be needed to find that out.
using FurtherTrials = std::function<std::optional<std::vector<const Trial*>>(
    const std::vector<const Trial*>& checked, const std::set<std::string>& unread)>;

struct DryRunOptions {
  std::filesystem::path program;
  /// The slots in which the trials will run. One dry run per slot (at most 16) runs at a time. All
  /// of them see the GPUs of the first slot, because no slot has fewer.
  std::vector<Slot> slots;
  UnreadSettings unread = UnreadSettings::reject;
  /// If this is empty, only the given trials are checked. If it returns nothing, keys without
  /// effect are only warnings.
  FurtherTrials further = {};
  /// Whether the trials will be trained on this host. Otherwise, too few GPUs are only a warning,
  /// because the other host may have more.
  bool trains_here = true;
};

/// Runs `program train --dry-run --json` on the recipe of each trial with its settings.
/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 stop the dry runs.
/// @param text formats a problem as a message; several trials may have the same message.
/// @return false if a signal stopped the dry runs.
/// @throws Error with the messages of all problems, without duplicates. Its exit code is that of
/// the dry runs if it is 3, 4, 5 or 6 for all problems, such as 5 for a missing dataset and 6 for
/// too few GPUs; otherwise 2. IoError if a program cannot be started.
[[nodiscard]] bool check_by_dry_run(
    std::vector<const Trial*> trials, const DryRunOptions& options,
    const std::function<std::string(const TrialProblem&)>& text = [](const TrialProblem& problem) {
      return problem.text;
    });

}  // namespace precast::tools
