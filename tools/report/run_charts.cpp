#include "tools/report/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/report/chart/bar_chart.h"
#include "tools/report/chart/line_chart.h"

namespace precast::tools {
namespace {

constexpr double kSecondsPerMinute = 60;

/// Draws `y` of each row over `x`; rows without `y` are skipped.
LineSeries series_of(const std::vector<RunRow>& rows, double RunRow::*x, double RunRow::*y,
                     double scale = 1) {
  LineSeries series;
  for (const RunRow& row : rows)
    if (!std::isnan(row.*y)) series.points.push_back({row.*x, scale * row.*y});
  return series;
}

/// Adds the chart if any run has data for it. Its legend also lists the runs without data.
void add_chart(std::vector<std::string>& charts, const LineChart& chart) {
  const auto drawn = [](const LineSeries& series) { return !series.points.empty(); };
  if (std::ranges::any_of(chart.series, drawn)) charts.push_back(line_chart_svg(chart));
}

/// A line of one run in a chart.
struct Figure {
  std::string label;
  LineSeries series;
};
using Figures = std::vector<Figure>;

/// Adds the lines that `figures_of` returns for each run to `chart`. With one run, colours and
/// names distinguish figures. With several, they distinguish runs, so there should be one figure
/// per run.
template <typename FiguresOf>
LineChart chart_of(const std::vector<RunRecord>& runs, LineChart chart, FiguresOf figures_of) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (Figure& figure : figures_of(runs[i])) {
      if (runs.size() == 1 && figure.series.points.empty()) continue;
      figure.series.colour = static_cast<int>(runs.size() > 1 ? i : chart.series.size());
      figure.series.label = runs.size() > 1 ? runs[i].name : figure.label;
      chart.series.push_back(std::move(figure.series));
    }
  }
  return chart;
}

/// One axis for all charts of a page, so that they can be compared one below the other.
Axis epochs_axis(const std::vector<RunRecord>& runs) {
  double max = 1;
  for (const RunRecord& run : runs) {
    if (!run.epochs.empty()) max = std::fmax(max, run.epochs.back().epochs_done);
    if (!run.steps.empty()) max = std::fmax(max, std::ceil(run.steps.back().epochs_done));
  }
  return {.label = "epochs", .min = 0, .max = max, .integer = true};
}

/// One value of the rows, over epochs.
LineSeries over_epochs(const std::vector<RunRow>& rows, double RunRow::*value, double scale = 1) {
  return series_of(rows, &RunRow::epochs_done, value, scale);
}

/// One value of the rows, over minutes of training.
LineSeries over_minutes(const std::vector<RunRow>& rows, double RunRow::*value, double scale) {
  LineSeries series = series_of(rows, &RunRow::train_seconds, value, scale);
  for (LinePoint& point : series.points) point.x /= kSecondsPerMinute;
  return series;
}

/// Returns the step records if there are at least two, because the means of epochs hide the
/// beginning; otherwise the epochs.
const std::vector<RunRow>& finest(const RunRecord& run) {
  return run.steps.size() > 1 ? run.steps : run.epochs;
}

struct Accuracy {
  std::string label;
  double RunRow::*value;
};

/// Accuracy over epochs, or over minutes.
LineChart accuracy_chart(const std::vector<RunRecord>& runs, const std::string& title,
                         const std::vector<Accuracy>& values, bool minutes) {
  const Axis x = minutes ? Axis{.label = "minutes of training", .min = 0} : epochs_axis(runs);
  return chart_of(runs,
                  {.title = title + (minutes ? " over training time" : ""),
                   .x = x,
                   .y = {.label = "accuracy, %"}},
                  [&](const RunRecord& run) {
                    Figures figures;
                    for (const auto& [label, value] : values)
                      figures.push_back({label, minutes ? over_minutes(run.epochs, value, 100)
                                                        : over_epochs(run.epochs, value, 100)});
                    return figures;
                  });
}

/// The metric that determines the best checkpoint, over epochs.
LineChart metric_chart(const std::vector<RunRecord>& runs, const std::string& metric) {
  return chart_of(runs, {.title = metric, .x = epochs_axis(runs), .y = {.label = metric}},
                  [](const RunRecord& run) {
                    return Figures{{"", over_epochs(run.epochs, &RunRow::metric)}};
                  });
}

/// Logarithmic if the largest value is over 20 times the smallest: on a linear axis, one diverging
/// loss would flatten all other curves.
Axis loss_axis(const LineChart& chart) {
  constexpr double kWideSpan = 20;
  double min = INFINITY, max = 0;
  for (const LineSeries& series : chart.series) {
    for (const LinePoint& point : series.points) {
      if (!std::isfinite(point.y)) continue;
      min = std::min(min, point.y);
      max = std::max(max, point.y);
    }
  }
  // Losses of 0 or less cannot be shown on a logarithmic axis.
  if (!(min > 0) || max <= kWideSpan * min) return {.label = "loss"};
  return {.label = "loss, logarithmic", .scale = Scale::logarithmic};
}

LineChart loss_chart(const std::vector<RunRecord>& runs, const std::string& title, bool train,
                     bool validation) {
  LineChart chart =
      chart_of(runs, {.title = title, .x = epochs_axis(runs), .y = {.label = "loss"}},
               [&](const RunRecord& run) {
                 Figures figures;
                 if (train)
                   figures.push_back({run.steps.size() > 1 ? "training, single steps" : "training",
                                      over_epochs(finest(run), &RunRow::loss)});
                 if (validation)
                   figures.push_back({"validation", over_epochs(run.epochs, &RunRow::val_loss)});
                 return figures;
               });
  chart.y = loss_axis(chart);
  return chart;
}

/// Shows how fast `total` grew in each epoch, per second of training (see rates()).
LineChart rate_chart(const std::vector<RunRecord>& runs, const std::string& title, const Axis& y,
                     double RunRow::*total, double scale) {
  return chart_of(runs, {.title = title, .x = epochs_axis(runs), .y = y},
                  [&](const RunRecord& run) {
                    LineSeries series;
                    const auto values = rates(run.epochs, total);
                    for (std::size_t i = 0; i < values.size(); ++i)
                      if (!std::isnan(values[i]))
                        series.points.push_back({run.epochs[i].epochs_done, scale * values[i]});
                    return Figures{{"", series}};
                  });
}

std::string time_shares(const std::vector<RunRecord>& runs) {
  ShareChart chart{.title = "Where the run's time went",
                   .parts = {"computing", "waiting for data", "evaluation"}};
  chart.width = 560;
  for (const RunRecord& run : runs) {
    const double train = run.train_minutes(), wait = run.wait_share() * train;
    double eval = 0;
    for (const RunRow& row : run.epochs)
      if (!std::isnan(row.val_seconds)) eval += row.val_seconds / kSecondsPerMinute;
    if (const auto recorded = run.summary.find("eval_minutes");
        recorded != run.summary.end() && recorded->is_number())
      eval = recorded->get<double>();
    chart.rows.push_back({run.name, {train - (std::isnan(wait) ? 0 : wait), wait, eval}});
  }
  return share_chart_svg(chart);
}

std::string loader_shares(const std::vector<RunRecord>& runs) {
  ShareChart chart{.title = "What the loader's threads did",
                   .parts = {"decoding", "reading", "blocked", "ahead of the model"}};
  chart.width = 560;
  bool any = false;
  for (const RunRecord& run : runs) {
    chart.rows.push_back({run.name, {}});
    for (const auto count :
         {&RunRow::decoding, &RunRow::reading, &RunRow::blocked, &RunRow::ahead}) {
      const double seconds = last_of(run.epochs, count);
      chart.rows.back().values.push_back(std::isnan(seconds) ? 0 : seconds);
      any = any || seconds > 0;
    }
  }
  return any ? share_chart_svg(chart) : "";
}

LineChart learning_rate_chart(const std::vector<RunRecord>& runs) {
  return chart_of(
      runs, {.title = "Learning rate", .x = epochs_axis(runs), .y = {.label = "rate", .min = 0}},
      [](const RunRecord& run) {
        return Figures{{"", over_epochs(finest(run), &RunRow::lr)}};
      });
}

LineChart resolution_chart(const std::vector<RunRecord>& runs) {
  return chart_of(
      runs, {.title = "Resolution", .x = epochs_axis(runs), .y = {.label = "pixels", .min = 0}},
      [](const RunRecord& run) {
        // Each epoch has one resolution from its beginning to its end.
        LineSeries series{.steps = true};
        for (const RunRow& row : run.epochs) {
          if (std::isnan(row.resolution)) continue;
          series.points.push_back({row.epochs_done - 1, row.resolution});
          series.points.push_back({row.epochs_done, row.resolution});
        }
        return Figures{{"", series}};
      });
}

}  // namespace

std::string common_metric(const std::vector<RunRecord>& runs) {
  const auto same = [&](const RunRecord& run) {
    return !run.best_by_accuracy() && run.metric == runs.front().metric;
  };
  return !runs.empty() && std::ranges::all_of(runs, same) ? runs.front().metric : "";
}

std::vector<std::string> learning_charts(const std::vector<RunRecord>& runs) {
  std::vector<std::string> charts;
  const auto add_loss = [&](const std::string& title, bool train, bool validation) {
    add_chart(charts, loss_chart(runs, title, train, validation));
  };
  const std::string metric = common_metric(runs);
  const bool by_loss = metric == "val_loss";
  if (by_loss) {
    add_loss("Validation loss", /*train=*/false, /*validation=*/true);
  } else if (!metric.empty()) {
    add_chart(charts, metric_chart(runs, metric));
  }
  const bool one = runs.size() == 1;
  const std::vector<Accuracy> both = {{"top-1", &RunRow::top_1}, {"top-5", &RunRow::top_5}};
  const std::vector<Accuracy> top_1 = {{"", &RunRow::top_1}}, top_5 = {{"", &RunRow::top_5}};
  for (const bool minutes : {false, true})
    add_chart(charts,
              accuracy_chart(runs, one ? "Accuracy" : "Top-1", one ? both : top_1, minutes));
  if (one && !by_loss) {
    add_loss("Loss", /*train=*/true, /*validation=*/true);
  } else {
    add_loss("Training loss", /*train=*/true, /*validation=*/false);
    if (!by_loss) add_loss("Validation loss", /*train=*/false, /*validation=*/true);
  }
  if (!one) add_chart(charts, accuracy_chart(runs, "Top-5", top_5, /*minutes=*/false));
  add_chart(charts, learning_rate_chart(runs));
  return charts;
}

std::vector<std::string> speed_charts(const std::vector<RunRecord>& runs) {
  std::vector<std::string> charts;
  add_chart(charts, rate_chart(runs, "Throughput", {.label = "images per second", .min = 0},
                               &RunRow::images, 1));
  add_chart(charts, resolution_chart(runs));
  add_chart(charts, rate_chart(runs, "Waiting for data", {.label = "% of training time", .min = 0},
                               &RunRow::wait_seconds, 100));
  charts.push_back(time_shares(runs) + loader_shares(runs));
  return charts;
}

}  // namespace precast::tools
