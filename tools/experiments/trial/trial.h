#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/config/node.h"

namespace precast::tools {

/// One key of a recipe and its value as it stands on a command line.
struct Setting {
  std::string key;
  std::string value;
};

/// A value of a file as a command line takes it: scalars as they are written, lists and maps in
/// flow style.
[[nodiscard]] std::string setting_text(const ConfigNode& value);

/// One training that is part of a larger job: a recipe with some keys set, under a name that stays
/// the same however often the job is started again.
struct Trial {
  std::string id;
  /// The recipe. Empty: defaults and the settings alone.
  std::filesystem::path recipe;
  std::vector<Setting> settings;
  /// logging.folder: the run's folder is `<folder>/<id>`.
  std::filesystem::path folder;

  [[nodiscard]] std::filesystem::path run_folder() const { return folder / id; }
  /// `train RECIPE --key=value ... --logging.folder=F --logging.run_id=ID
  /// --checkpoint.resume=auto`: starts the run or goes on with it.
  [[nodiscard]] std::vector<std::string> train_arguments() const;
};

/// A digest of a recipe's file: whether results belong to it. @throws IoError
[[nodiscard]] std::string recipe_hash(const std::filesystem::path& recipe);

/// This program's file, which trains as `precast train`.
[[nodiscard]] std::filesystem::path own_program();

/// False for keys that say where data and runs lie, and how many threads read.
[[nodiscard]] bool changes_results(const Setting& setting);

/// A name for `settings` that is readable, safe as a folder's name, and differs where they differ:
/// `lr0.1_weight_decay5e-4-1c9f03ab5d20e7b4`. A function of keys and values alone, not of their
/// order.
[[nodiscard]] std::string trial_id(const std::vector<Setting>& settings);

/// What the end of a training's process means for its job.
enum class Verdict {
  done,
  /// Pre-empted with a checkpoint (85): to be run again.
  go_on,
  /// NaN or infinity (12): a result like another one.
  diverged,
  /// May not happen again: signals (also as 128 + N), codes 5, 6, 10, 11, 13 and 14.
  retry,
  /// Would happen again: 1, 3, 4 and unknown codes.
  failed,
  /// Would happen to all: 2, 126 and 127.
  fatal,
};
/// @param signal what killed the process; 0: nothing.
[[nodiscard]] Verdict judge_end(int exit_code, int signal);

/// The figures that a finished run left (summary.json); empty if it has not finished.
[[nodiscard]] std::optional<nlohmann::ordered_json> read_summary(
    const std::filesystem::path& run_folder);

}  // namespace precast::tools
