#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/experiments/reproduce/table.h"
#include "tools/experiments/trial/interval.h"
#include "tools/experiments/trial/journal.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// One training run of a row, with one seed.
struct SeedRun {
  std::int64_t seed = 0;
  Trial trial;
  TrialStatus status = TrialStatus::waiting;
  /// The result of read_summary(); null unless the trial is done.
  nlohmann::ordered_json summary;
  /// run.json: machine, dataset, batch; empty before the run has begun.
  nlohmann::ordered_json facts;
  /// Whether its folder contains report.html, which a run writes when it ends.
  bool has_report = false;
  /// The accuracy after each epoch that has been evaluated so far.
  std::vector<CurvePoint> curve;
};

/// The results of a row on this machine so far.
struct RowResult {
  const TableRow* row = nullptr;
  std::vector<SeedRun> runs;

  /// Mean and interval of a figure of summary.json over the finished runs; nothing if no run has
  /// this figure.
  [[nodiscard]] std::optional<MeanInterval> figure(const char* key) const;
  /// Minutes of training and evaluation together, because published times include both.
  [[nodiscard]] std::optional<MeanInterval> minutes() const;
  /// How many runs are done: `2 of 3`; or which runs ended without a result: `seed 1: diverged`,
  /// `seeds 0, 1: diverged; seed 2: failed`.
  [[nodiscard]] std::string progress() const;
};

/// The training run of a row with one seed. @param settings settings for all rows, applied after
/// the row's own.
[[nodiscard]] Trial make_row_trial(const TableRow& row, std::int64_t seed,
                                   const std::vector<Setting>& settings,
                                   const std::filesystem::path& folder);

/// A row and its trials; the trial at index i has seed i.
struct RowTrials {
  const TableRow* row = nullptr;
  std::vector<Trial> trials;
};

/// Reads the results from the run folders and the journal.
[[nodiscard]] std::vector<RowResult> collect_results(
    const std::vector<RowTrials>& rows, const std::map<std::string, TrialState>& states);

}  // namespace precast::tools
