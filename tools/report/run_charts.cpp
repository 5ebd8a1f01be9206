#include "tools/report/run_charts.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/chart/bar_chart.h"
#include "tools/chart/line_chart.h"

namespace precast::tools {
namespace {

constexpr double kSecondsAMinute = 60;

/// One value of rows as a line; rows without it are gaps.
LineSeries series_of(const std::vector<RunRow>& rows, double RunRow::*x, double RunRow::*y,
                     double scale = 1) {
  LineSeries series;
  for (const RunRow& row : rows)
    if (!std::isnan(row.*y)) series.points.push_back({row.*x, scale * row.*y});
  return series;
}

/// A chart as long as something is drawn in it.
void add_chart(std::vector<std::string>& charts, LineChart chart) {
  std::erase_if(chart.series, [](const LineSeries& series) { return series.points.empty(); });
  if (!chart.series.empty()) charts.push_back(line_chart_svg(chart));
}

/// Lets `fill` draw each run in its colour; its lines are named after it where there are several.
template <typename Fill>
LineChart chart_of(const std::vector<RunRecord>& runs, LineChart chart, Fill fill) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::size_t first = chart.series.size();
    fill(runs[i], chart.series);
    for (std::size_t line = first; line < chart.series.size(); ++line) {
      LineSeries& series = chart.series[line];
      if (runs.size() > 1) {
        series.colour = static_cast<int>(i);
        series.dashed = line > first;
        series.label = runs[i].name + (series.label.empty() ? "" : ", " + series.label);
      } else {
        series.colour = static_cast<int>(line - first);
      }
    }
  }
  return chart;
}

/// One axis for all charts of a page, so that they can be read below each other.
Axis epochs_axis(const std::vector<RunRecord>& runs) {
  double most = 1;
  for (const RunRecord& run : runs) {
    if (!run.epochs.empty()) most = std::fmax(most, run.epochs.back().epochs_done);
    if (!run.steps.empty()) most = std::fmax(most, std::ceil(run.steps.back().epochs_done));
  }
  return {.label = "epochs", .least = 0, .most = most, .whole = true};
}

void add_named(std::vector<LineSeries>& all, LineSeries series, const std::string& label) {
  series.label = label;
  all.push_back(std::move(series));
}

/// Over epochs or minutes. @param scale of x.
LineChart accuracy_chart(const std::vector<RunRecord>& runs, const std::string& title,
                         const Axis& x, double RunRow::*along, double scale) {
  return chart_of(runs, {.title = title, .x = x, .y = {.label = "accuracy, %"}},
                  [&](const RunRecord& run, std::vector<LineSeries>& all) {
                    for (const auto& [value, label] :
                         {std::pair{&RunRow::top_1, "top-1"}, std::pair{&RunRow::top_5, "top-5"}}) {
                      LineSeries series = series_of(run.epochs, along, value, 100);
                      for (LinePoint& point : series.points) point.x *= scale;
                      add_named(all, series, label);
                    }
                  });
}

LineChart loss_chart(const std::vector<RunRecord>& runs) {
  return chart_of(
      runs, {.title = "Loss", .x = epochs_axis(runs), .y = {.label = "loss"}},
      [](const RunRecord& run, std::vector<LineSeries>& all) {
        // Of single steps where there are some: the epochs' means hide what happens first.
        const bool steps = run.steps.size() > 1;
        add_named(all,
                  series_of(steps ? run.steps : run.epochs, &RunRow::epochs_done, &RunRow::loss),
                  steps ? "training, single steps" : "training");
        add_named(all, series_of(run.epochs, &RunRow::epochs_done, &RunRow::val_loss),
                  "validation");
      });
}

/// A rate over epochs, from the totals of rows.
LineChart rate_chart(const std::vector<RunRecord>& runs, const std::string& title, const Axis& y,
                     double RunRow::*total, double scale) {
  return chart_of(runs, {.title = title, .x = epochs_axis(runs), .y = y},
                  [&](const RunRecord& run, std::vector<LineSeries>& all) {
                    LineSeries series;
                    const auto values = rates(run.epochs, total);
                    for (std::size_t i = 0; i < values.size(); ++i)
                      if (!std::isnan(values[i]))
                        series.points.push_back({run.epochs[i].epochs_done, scale * values[i]});
                    all.push_back(series);
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
      if (!std::isnan(row.val_seconds)) eval += row.val_seconds / kSecondsAMinute;
    if (const auto told = run.summary.find("eval_minutes");
        told != run.summary.end() && told->is_number())
      eval = told->get<double>();
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
      chart.rows.back().values.push_back(total_over_restarts(run.epochs, count));
      any = any || chart.rows.back().values.back() > 0;
    }
  }
  return any ? share_chart_svg(chart) : "";
}

LineChart rate_schedule_chart(const std::vector<RunRecord>& runs) {
  return chart_of(
      runs, {.title = "Learning rate", .x = epochs_axis(runs), .y = {.label = "rate", .least = 0}},
      [](const RunRecord& run, std::vector<LineSeries>& all) {
        all.push_back(series_of(run.steps.size() > 1 ? run.steps : run.epochs, &RunRow::epochs_done,
                                &RunRow::lr));
      });
}

LineChart resolution_chart(const std::vector<RunRecord>& runs) {
  return chart_of(
      runs, {.title = "Resolution", .x = epochs_axis(runs), .y = {.label = "pixels", .least = 0}},
      [](const RunRecord& run, std::vector<LineSeries>& all) {
        // Each epoch has one from its begin to its end.
        LineSeries series{.steps = true};
        for (const RunRow& row : run.epochs) {
          if (std::isnan(row.resolution)) continue;
          series.points.push_back({row.epochs_done - 1, row.resolution});
          series.points.push_back({row.epochs_done, row.resolution});
        }
        all.push_back(series);
      });
}

}  // namespace

std::vector<std::string> learning_charts(const std::vector<RunRecord>& runs) {
  std::vector<std::string> charts;
  add_chart(charts, accuracy_chart(runs, "Accuracy", epochs_axis(runs), &RunRow::epochs_done, 1));
  add_chart(charts, accuracy_chart(runs, "Accuracy over training time",
                                   {.label = "minutes of training", .least = 0},
                                   &RunRow::train_seconds, 1 / kSecondsAMinute));
  add_chart(charts, loss_chart(runs));
  add_chart(charts, rate_schedule_chart(runs));
  return charts;
}

std::vector<std::string> speed_charts(const std::vector<RunRecord>& runs) {
  std::vector<std::string> charts;
  add_chart(charts, rate_chart(runs, "Throughput", {.label = "images a second", .least = 0},
                               &RunRow::images, 1));
  add_chart(charts, resolution_chart(runs));
  add_chart(charts,
            rate_chart(runs, "Waiting for data", {.label = "% of training time", .least = 0},
                       &RunRow::wait_seconds, 100));
  charts.push_back(time_shares(runs) + loader_shares(runs));
  return charts;
}

}  // namespace precast::tools
