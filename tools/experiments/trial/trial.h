#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/config/node.h"

namespace precast::tools {

/// One key of a recipe and its value as written on a command line.
struct Setting {
  std::string key;
  std::string value;
};

/// Returns a value from a YAML file in the form for a command line: scalars as written, lists and
/// maps in flow style.
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
  /// `train RECIPE --key=value ... --logging.folder=F --logging.run_id=ID --checkpoint.resume=auto
  /// --warn-unread`: starts or resumes the run.
  [[nodiscard]] std::vector<std::string> train_arguments() const;
};

/// Returns the value of `key` (`section.name`) in `settings` or, if they do not contain it, in the
/// sections of a recipe; null if neither contains it.
[[nodiscard]] ConfigNode value_of(std::string_view key, const ConfigNode& recipe,
                                  const std::vector<Setting>& settings);

/// The keys that name datasets.
inline constexpr std::string_view kDatasetKeys[] = {"data.train_dataset", "data.val_dataset"};
/// The size of all files of a dataset together. @param files the value of one of kDatasetKeys.
/// @return nothing if there are no files, or if the size of a file is unknown, as for a URL.
[[nodiscard]] std::optional<std::uintmax_t> dataset_bytes(const ConfigNode& files);

/// The files of a dataset without their folders, which may differ from host to host.
[[nodiscard]] std::string dataset_names(const ConfigNode& files);

/// Returns a hash of the recipe's file, to check whether results belong to the recipe. @throws
/// IoError
[[nodiscard]] std::string recipe_hash(const std::filesystem::path& recipe);

/// Returns the plug-ins of a recipe with these settings as `{file: hash}`. The files are named as
/// in the recipe; the hashes are those that runs record as plugins.xxh3. Files that cannot be read
/// are left out: the trials report them. @throws IoError if the recipe cannot be read.
[[nodiscard]] nlohmann::ordered_json plugin_hashes(const std::filesystem::path& recipe,
                                                   const std::vector<Setting>& settings);

/// If this key is true, a run evaluates instead of training.
inline constexpr std::string_view kEvalOnlyKey = "training.eval_only";
/// Reports an error if kEvalOnlyKey is true in a trial, because an evaluation writes no results
/// that a job can read. @param value the value of the key; the error is reported at its origin.
void reject_eval_only(const ConfigNode& value, Diagnostics& diagnostics);

/// The path of the running program, which can be called as `precast train`.
[[nodiscard]] std::filesystem::path executable_path();

/// Whether the setting can change the results of a run, as long as the contents of the datasets are
/// the same (tools/cli/neutral_keys.h).
[[nodiscard]] bool changes_results(const Setting& setting);

/// A name for `settings` that is readable, valid as a folder name, and unique to them:
/// `lr0.1_weight_decay5e-4-1c9f03ab5d20e7b4`. Depends only on keys and values, not on their order.
[[nodiscard]] std::string trial_id(const std::vector<Setting>& settings);

/// What the end of a trial's process means for its job.
enum class TrialOutcome {
  done,
  /// Preempted with a checkpoint (85); the trial has to be started again to continue.
  preempted,
  /// The loss became NaN or infinite (12). This is a valid result.
  diverged,
  /// A failure that may be temporary: signals (also as 128 + N), codes 5, 6, 10, 11, 13 and 14.
  retry,
  /// A failure that a retry would repeat: 1, 3, 4 and unknown codes.
  failed,
  /// A failure that all trials would have: 2, 126 and 127.
  fatal,
};
/// @param signal the signal that killed the process; 0: none.
[[nodiscard]] TrialOutcome classify_exit(int exit_code, int signal);
/// Says how the process of a trial without a result has ended: `exit code 5`; `killed by SIGKILL`
/// (128 + N: signal N killed it or one of its ranks); `ended without summary.json` for exit code 0.
[[nodiscard]] std::string exit_text(int exit_code);

/// Returns the figures of a finished run: summary.json without the figures of each class. Nothing
/// if the run has not finished.
[[nodiscard]] std::optional<nlohmann::ordered_json> read_summary(
    const std::filesystem::path& run_folder);

/// Formats a figure for tables. Accuracies (`top_K`) get four decimal places. Other figures, such
/// as a loss or images per second, are rounded to integers if they are at least 1000, otherwise to
/// four significant digits.
[[nodiscard]] std::string format_figure(double value, std::string_view figure);
/// The same for a value from JSON; `-` if it is not a number.
[[nodiscard]] std::string figure_text(const nlohmann::ordered_json& value, std::string_view figure);

}  // namespace precast::tools
