#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/journal.h"
#include "tools/report/chart/line_chart.h"

namespace precast::tools {

/// Writes grid.html: the ranking, the effect of the axes on the metric, the curves of all trials,
/// failures and their causes, and slot usage. Self-contained; it links to the trials' run folders
/// in the same folder. Not thread-safe.
class GridPage {
 public:
  /// Borrows `sweep`.
  explicit GridPage(const Sweep& sweep) : sweep_(sweep) {}

  /// Writes the current state of the grid into its folder, atomically. Does nothing while the
  /// folder is missing. @throws IoError
  void write(const std::map<std::string, TrialState>& states);

 private:
  /// Curves of the ranking's metric, or of top_1 if that metric is not recorded per epoch.
  [[nodiscard]] std::string curve_figure() const;
  void read_curves(const std::map<std::string, TrialState>& states);

  const Sweep& sweep_;
  /// Logs of trials that have begun. Logs of trials that have ended are not read again.
  std::map<std::string, std::vector<LinePoint>> curves_;
  std::map<std::string, int> starts_at_end_;
};

}  // namespace precast::tools
