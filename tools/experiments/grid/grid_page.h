#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"
#include "tools/experiments/trial/journal.h"
#include "tools/report/chart/line_chart.h"

namespace precast::tools {

/// Writes grid.html: the ranking, what the axes do to the metric, the curves of all trials, what
/// has failed and why, and how well the slots were used. Self-contained; it links to the trials'
/// run folders beside it. One thread.
class GridPage {
 public:
  /// Borrows `sweep`.
  explicit GridPage(const Sweep& sweep) : sweep_(sweep) {}

  /// The grid as it stands, into its folder, whole or not at all. Nothing while the folder is
  /// missing. @throws IoError
  void write(const std::map<std::string, TrialState>& states);

 private:
  /// Of the ranking's metric, or of top_1 where that is no figure of epochs.
  [[nodiscard]] std::string curve_figure() const;
  void read_curves(const std::map<std::string, TrialState>& states);

  const Sweep& sweep_;
  /// Of trials that have begun. Those that have ended are not read again.
  std::map<std::string, std::vector<LinePoint>> curves_;
  std::map<std::string, int> starts_at_end_;
};

}  // namespace precast::tools
