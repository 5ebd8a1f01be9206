#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/report/html_page.h"
#include "tools/report/run_record.h"

namespace precast::tools {

/// `71.23 %`; `-` if the share is NaN.
[[nodiscard]] std::string percent_text(double share, int digits = 2);
/// Four significant digits; `-` if the value is NaN.
[[nodiscard]] std::string number_text(double value);

/// What the evaluations of a run measured, as the first figures of its page: the metric that
/// determines the best checkpoint, then the accuracies (top-5 first if it is this metric) or, if
/// the run has none, the loss.
[[nodiscard]] std::vector<HtmlFigure> quality_figures(const RunRecord& run);

/// A column of a table of several runs.
struct ComparedFigure {
  std::string label;
  std::function<double(const RunRecord&)> value;
  std::function<std::string(double)> text;
  bool higher_is_better = true;
};

/// As quality_figures(), for several runs. Without a common_metric(), the first is the top-1 (top-5
/// if it is the metric of all runs) or, if no run has accuracies, the validation loss.
[[nodiscard]] std::vector<ComparedFigure> compared_figures(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
