#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/config/node.h"

namespace precast::tools {

/// One key of a recipe and its value as written on a command line.
struct Setting {
  std::string key;
  std::string value;
};

/// A value from a YAML file as it is given on a command line: scalars as written, lists and maps in
/// flow style.
[[nodiscard]] std::string setting_text(const ConfigNode& value);

/// One training run that is part of a larger job: a recipe with some keys set, under a name that
/// stays the same when the job is restarted.
struct Trial {
  std::string id;
  /// The recipe. If it is empty, the settings change the defaults.
  std::filesystem::path recipe;
  std::vector<Setting> settings;
  /// logging.folder: the run's folder is `<folder>/<id>`.
  std::filesystem::path folder;

  [[nodiscard]] std::filesystem::path run_folder() const { return folder / id; }
  /// `train RECIPE --key=value ... --logging.folder=F --logging.run_id=ID
  /// --checkpoint.resume=auto`: starts or resumes the run.
  [[nodiscard]] std::vector<std::string> train_arguments() const;
};

/// A hash of the recipe's file, to check whether results belong to the recipe. @throws IoError
[[nodiscard]] std::string recipe_hash(const std::filesystem::path& recipe);

/// The path of the running program, which can be called as `precast train`.
[[nodiscard]] std::filesystem::path own_program();

/// Whether the setting can change the results of a run. False for keys that give the location of
/// datasets and runs, control how data is read and cached, or say how often the log is written.
[[nodiscard]] bool changes_results(const Setting& setting);

/// A name for `settings` that is readable, valid as a folder name, and unique to them:
/// `lr0.1_weight_decay5e-4-1c9f03ab5d20e7b4`. Depends only on keys and values, not on their order.
[[nodiscard]] std::string trial_id(const std::vector<Setting>& settings);

/// The meaning of the end of a trial's process for its job.
enum class Verdict {
  done,
  /// Preempted with a checkpoint (85); the trial has to be started again to continue.
  go_on,
  /// NaN or infinity (12): a valid result.
  diverged,
  /// A failure that may be temporary: signals (also as 128 + N), codes 5, 6, 10, 11, 13 and 14.
  retry,
  /// A failure that a retry would repeat: 1, 3, 4 and unknown codes.
  failed,
  /// A failure that all trials would have: 2, 126 and 127.
  fatal,
};
/// @param signal the signal that killed the process; 0: none.
[[nodiscard]] Verdict judge_end(int exit_code, int signal);

/// The figures of a finished run: summary.json without the figures of each class. Nothing if the
/// run has not finished.
[[nodiscard]] std::optional<nlohmann::ordered_json> read_summary(
    const std::filesystem::path& run_folder);

}  // namespace precast::tools
