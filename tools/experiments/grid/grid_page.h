#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/journal.h"
#include "tools/report/chart/line_chart.h"

namespace precast::tools {

/// Writes grid.html: the ranking, the effect of the axes on the metric, the curves of the trials,
/// failures and their causes, and slot usage. The page is self-contained, and links to the run
/// folders of the trials. Not thread-safe.
class GridPage {
 public:
  /// Keeps a reference to `sweep`. @throws IoError if the recipe cannot be read.
  explicit GridPage(const Sweep& sweep);

  /// Writes the current state of the grid into its folder, atomically. Does nothing while the
  /// folder is missing. @throws IoError
  void write(const std::map<std::string, TrialState>& states);

 private:
  /// The figure whose curves are shown: the metric of the ranking, or top_1 if this metric is not
  /// recorded per epoch.
  [[nodiscard]] std::string curve_figure() const;
  void read_curves(const std::map<std::string, TrialState>& states);

  const Sweep& sweep_;
  /// incomparable_losses()
  std::vector<std::string> warnings_;
  /// The curves of trials that have begun.
  std::map<std::string, std::vector<LinePoint>> curves_;
  /// For each trial that has ended, its number of starts at that time. Its log is not read again
  /// until the trial has been started once more.
  std::map<std::string, int> starts_at_end_;
};

}  // namespace precast::tools
