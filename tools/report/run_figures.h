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

/// Returns the evaluation results that a run's page shows first: the metric that determines the
/// best checkpoint, then top-1 and top-5 or, for a run without accuracies, the validation loss. If
/// top-5 determines the best checkpoint, it precedes top-1.
[[nodiscard]] std::vector<HtmlFigure> quality_figures(const RunRecord& run);

/// A column of the table that compares runs.
struct ComparedFigure {
  std::string label;
  std::function<double(const RunRecord&)> value;
  std::function<std::string(double)> text;
  bool higher_is_better = true;
};

/// Like quality_figures(), for several runs. Without a common_metric(), the first figure is top-1
/// (top-5 if it determines the best checkpoint of all runs) or, if no run has accuracies, the
/// validation loss.
[[nodiscard]] std::vector<ComparedFigure> compared_figures(const std::vector<RunRecord>& runs);

}  // namespace precast::tools
