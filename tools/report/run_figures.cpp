#include "tools/report/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/report/chart/svg.h"
#include "tools/report/run_charts.h"

namespace precast::tools {
namespace {

/// The epoch with the best value of the run's metric; nothing if no epoch was evaluated.
const RunRow* best_epoch(const RunRecord& run) {
  const RunRow* best = nullptr;
  for (const RunRow& row : run.epochs) {
    if (std::isnan(row.metric)) continue;
    const bool better = best == nullptr || (run.higher_is_better ? row.metric > best->metric
                                                                 : row.metric < best->metric);
    if (better) best = &row;
  }
  return best;
}

/// The label of a metric in figures and tables.
std::string metric_label(const std::string& metric) {
  return metric == "val_loss" ? "validation loss" : metric;
}

/// `best 71.23 % in epoch 9`; empty if no epoch was evaluated.
std::string best_text(const RunRecord& run) {
  const RunRow* best = best_epoch(run);
  if (best == nullptr) return {};
  return fmt::format(
      "best {} in epoch {}",
      run.best_by_accuracy() ? percent_text(best->metric) : number_text(best->metric),
      best->epoch + 1);
}

bool best_by_top_5(const RunRecord& run) {
  return run.metric == "top_5";
}

/// `10,000 validation images`; empty before the end of the run.
std::string validation_text(const RunRecord& run) {
  const nlohmann::ordered_json images = run.summary.value("val_images", nlohmann::ordered_json());
  if (!images.is_number()) return {};
  return fmt::format("{} validation {}{}", readable(images.get<double>()),
                     run.is_classification() ? "image" : "sample", images == 1 ? "" : "s");
}

}  // namespace

std::string percent_text(double share, int digits) {
  return std::isnan(share) ? "-" : fmt::format("{:.{}f} %", 100 * share, digits);
}

std::string number_text(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4g}", value);
}

std::vector<HtmlFigure> quality_figures(const RunRecord& run) {
  std::vector<HtmlFigure> figures;
  if (!run.best_by_accuracy())
    figures.push_back({number_text(run.metric_value()), metric_label(run.metric)});
  if (run.is_classification()) {
    figures.push_back({percent_text(run.top_1()), "top-1"});
    figures.push_back({percent_text(run.top_5()), "top-5"});
    if (best_by_top_5(run)) std::swap(figures[0], figures[1]);
  } else if (run.metric != "val_loss") {
    figures.push_back({number_text(run.val_loss()), "validation loss"});
  }
  figures.front().note = best_text(run);
  const std::string images = validation_text(run);
  std::string& last = figures.back().note;
  last += (last.empty() || images.empty() ? "" : ", ") + images;
  return figures;
}

std::vector<ComparedFigure> compared_figures(const std::vector<RunRecord>& runs) {
  const auto share = [](double value) { return percent_text(value); };
  const std::string metric = common_metric(runs);
  std::vector<ComparedFigure> figures;
  if (!metric.empty())
    figures.push_back(
        {metric_label(metric), &RunRecord::metric_value, number_text, runs[0].higher_is_better});
  if (std::ranges::any_of(runs, &RunRecord::is_classification)) {
    figures.push_back({"top-1", &RunRecord::top_1, share});
    figures.push_back({"top-5", &RunRecord::top_5, share});
    if (std::ranges::all_of(runs, best_by_top_5)) std::swap(figures[0], figures[1]);
  } else if (metric != "val_loss") {
    figures.push_back({"validation loss", &RunRecord::val_loss, number_text,
                       /*higher_is_better=*/false});
  }
  return figures;
}

}  // namespace precast::tools
