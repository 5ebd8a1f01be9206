#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// Returns a number from a JSON record; NaN if it is missing or null, which is how JSON stores a
/// value that is not finite.
[[nodiscard]] double number_of(const nlohmann::ordered_json& record, std::string_view key);

/// One line of a run's log, for an epoch or for a step; NaN for missing values. Times, images and
/// steps are totals since the start of the run, except `val_seconds`, which is the time of one
/// evaluation, and `skipped_steps`, which are those of one epoch. In logs of earlier versions, the
/// times of the loader's threads are totals since the start of the process.
struct RunRow {
  std::int64_t epoch = 0;
  /// Epochs trained so far, including the fraction of the current one. Used as the position on a
  /// chart's axis.
  double epochs_done = 0;
  double step = NAN;
  /// The value of RunRecord::metric.
  double metric = NAN;
  double loss = NAN, val_loss = NAN, top_1 = NAN, top_5 = NAN, lr = NAN, resolution = NAN;
  double train_seconds = NAN, wait_seconds = NAN, val_seconds = NAN, images = NAN;
  double skipped_steps = NAN;
  /// How the loader's threads spent their time, in seconds.
  double decoding = NAN, reading = NAN, blocked = NAN, ahead = NAN;
};

/// The contents of a run folder, of a finished or an unfinished run.
struct RunRecord {
  std::filesystem::path folder;
  /// The run's id, such as `exp/seed0`; if the folder was renamed, its name.
  std::string name;
  /// The metric that determines the best checkpoint, and its direction, from run.json. Without an
  /// entry there, top_1.
  std::string metric = "top_1";
  bool higher_is_better = true;
  std::vector<RunRow> epochs;
  std::vector<RunRow> steps;
  /// params.json, summary.json and run.json; empty objects if a file is missing or damaged. The
  /// summary is also empty if the run was continued after it had finished, until it finishes again.
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  nlohmann::ordered_json summary = nlohmann::ordered_json::object();
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  /// Problems with the files, and the number of skipped steps if there are any, as messages.
  std::vector<std::string> notes;

  /// Whether there is a summary, which a run writes when it finishes.
  [[nodiscard]] bool finished() const { return !summary.empty(); }
  /// Figures from the summary, otherwise from the last lines of the log; NaN if neither has them.
  [[nodiscard]] double top_1() const;
  [[nodiscard]] double top_5() const;
  /// Whether the metric that determines the best checkpoint is an accuracy: top_1 or top_5.
  [[nodiscard]] bool best_by_accuracy() const { return metric == "top_1" || metric == "top_5"; }
  /// Whether the run has accuracies. Before the first evaluation, true only if best_by_accuracy().
  [[nodiscard]] bool is_classification() const {
    return best_by_accuracy() || !std::isnan(top_1());
  }
  [[nodiscard]] double metric_value() const;
  [[nodiscard]] double val_loss() const;
  [[nodiscard]] double train_minutes() const;
  [[nodiscard]] double images_per_second() const;
  /// The share of the training time spent waiting for data.
  [[nodiscard]] double wait_share() const;
};

/// Reads a run folder. The run may be unfinished, and its log may still grow. Lines that are
/// incomplete or are not records are skipped and noted. If a run returned to a checkpoint (epoch or
/// step numbers repeat), the last logged value is used. @throws IoError if there is no log.
[[nodiscard]] RunRecord load_run(const std::filesystem::path& folder);

/// A message about steps that were skipped (training.on_nonfinite: skip).
[[nodiscard]] std::string skipped_steps_text(std::int64_t steps);

/// Compares the log with the number of epochs that the run has finished. @return a message if the
/// record of a finished epoch is missing, otherwise an empty string
[[nodiscard]] std::string missing_epochs(const RunRecord& run, std::int64_t epochs_done);

/// Finds run folders: `path` itself if it contains a log, otherwise those below it at any depth,
/// sorted by path. A symbolic link is followed only if it points to a run folder, and folders
/// inside a run folder are not searched. In the folder of a grid, only `runs` is searched. @throws
/// IoError if there is no run folder, or a folder cannot be listed.
[[nodiscard]] std::vector<std::filesystem::path> find_runs(const std::filesystem::path& path);

/// Returns, for each row, the growth of `total` since the previous row divided by the seconds of
/// training since then: for RunRow::images, images per second; for RunRow::wait_seconds, the share
/// of the time spent waiting. The first row is compared with 0 if it belongs to the run's first
/// epoch. NaN where the quotient is unknown.
[[nodiscard]] std::vector<double> rates(const std::vector<RunRow>& rows, double RunRow::*total);

/// The last value that is a number; NaN if there is none.
[[nodiscard]] double last_of(const std::vector<RunRow>& rows, double RunRow::*value);

}  // namespace precast::tools
