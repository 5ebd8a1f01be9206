#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace precast::tools {

/// A number of a record; NaN where it has none (JSON writes one that is not finite as null).
[[nodiscard]] double number_of(const nlohmann::ordered_json& record, std::string_view key);

/// What one line of a run's log says, of an epoch or of a step; NaN where it does not. Times,
/// images and steps are totals since the run's start.
struct RunRow {
  std::int64_t epoch = 0;
  /// Epochs trained so far, with the part of the one that goes on: where a chart draws it.
  double epochs_done = 0;
  double step = NAN;
  double loss = NAN, val_loss = NAN, top_1 = NAN, top_5 = NAN, lr = NAN, resolution = NAN;
  double train_seconds = NAN, wait_seconds = NAN, val_seconds = NAN, images = NAN;
  /// Of the loader's threads, since their program was started: seconds.
  double decoding = NAN, reading = NAN, blocked = NAN, ahead = NAN;
};

/// All that a run folder tells, as far as it got.
struct RunRecord {
  std::filesystem::path folder;
  std::string name;
  std::vector<RunRow> epochs;
  std::vector<RunRow> steps;
  /// params.json, summary.json and run.json; empty objects where a file is not there (yet), or is
  /// damaged.
  nlohmann::ordered_json params = nlohmann::ordered_json::object();
  nlohmann::ordered_json summary = nlohmann::ordered_json::object();
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();
  /// What was wrong with the files, for people.
  std::vector<std::string> notes;

  /// It came to its end: there is a summary.
  [[nodiscard]] bool finished() const { return !summary.empty(); }
  /// Figures from the summary, else from the last lines; NaN where nothing says.
  [[nodiscard]] double top_1() const;
  [[nodiscard]] double top_5() const;
  [[nodiscard]] double train_minutes() const;
  [[nodiscard]] double images_per_second() const;
  /// Of the training time.
  [[nodiscard]] double wait_share() const;
};

/// Reads a folder that `precast train` writes or has written. A log may still grow, end in the
/// middle of a line, or hold lines that are no records: they are left out and noted. Where a run
/// went back (epoch or step numbers repeat), what was logged last counts. @throws IoError if there
/// is no log.
[[nodiscard]] RunRecord load_run(const std::filesystem::path& folder);

/// The run folders that a path means: itself if it has a log, else the folders in it that have one,
/// by name. @throws IoError if there are none.
[[nodiscard]] std::vector<std::filesystem::path> find_runs(const std::filesystem::path& path);

/// A row's rate or share since the one before (of the same list; the first counts from 0 if it is
/// the run's first epoch or step): images a second, or seconds waited of a second trained. NaN
/// where it cannot be told.
[[nodiscard]] std::vector<double> rates(const std::vector<RunRow>& rows, double RunRow::*total);

/// Seconds of all rows' counts that start anew with each program: the sum over its restarts. 0
/// where there are none.
[[nodiscard]] double total_over_restarts(const std::vector<RunRow>& rows, double RunRow::*count);

}  // namespace precast::tools
