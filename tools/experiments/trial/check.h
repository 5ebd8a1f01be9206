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
/// only the recipe's file contains are neither.
enum class UnreadSettings { warn, refuse };

/// Chooses further trials to check if keys have no effect in any of the trials `checked`. @return
/// no trials if these keys then have no effect in any other trial either; nothing if too many
/// checks would be needed to be certain of that.
using FurtherTrials = std::function<std::optional<std::vector<const Trial*>>(
    const std::vector<const Trial*>& checked, const std::set<std::string>& unread)>;

struct DryRunOptions {
  std::filesystem::path program;
  /// The slots in which the trials will run. As many dry runs run at the same time (at most 16),
  /// and see the GPUs of the first slot, which has the fewest.
  std::vector<Slot> slots;
  UnreadSettings unread = UnreadSettings::refuse;
  /// Empty: the given trials are all that matter. If it returns nothing, keys without effect are
  /// only warnings.
  FurtherTrials further = {};
  /// Whether the trials will be trained on this host. Otherwise, they may request GPUs that this
  /// host does not have; too few GPUs are only a warning.
  bool trains_here = true;
};

/// Runs `program train --dry-run --json` on the recipe of each trial with its settings.
/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 stop the dry runs.
/// @param text formats a problem; problems of several trials may get the same text.
/// @return false if a signal stopped the dry runs.
/// @throws DeviceError with the texts of all problems, each text once, if the only problem is that
/// the slots have too few GPUs; otherwise ConfigError with these texts. IoError if a program cannot
/// be started.
[[nodiscard]] bool check_by_dry_run(
    std::vector<const Trial*> trials, const DryRunOptions& options,
    const std::function<std::string(const TrialProblem&)>& text = [](const TrialProblem& problem) {
      return problem.text;
    });

}  // namespace precast::tools
