#include "tools/experiments/reproduce/table_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tools/experiments/reproduce/table_text.h"
#include "tools/report/chart/line_chart.h"
#include "tools/report/chart/scatter_chart.h"
#include "tools/report/html_page.h"

namespace precast::tools {
namespace {

constexpr int kOurColour = 0;

/// The models of a table, in its order.
std::vector<std::string> models_of(const std::vector<RowResult>& results) {
  std::vector<std::string> models;
  for (const RowResult& result : results) {
    if (std::find(models.begin(), models.end(), result.row->model) == models.end())
      models.push_back(result.row->model);
  }
  return models;
}

ScatterSeries our_series(const std::vector<RowResult>& results, const std::string& model) {
  ScatterSeries series{.label = "precast, this machine", .colour = kOurColour, .joined = true};
  for (const RowResult& result : results) {
    const auto top_1 = result.figure("top_1");
    const auto minutes = result.minutes();
    if (result.row->model != model || !top_1 || !minutes) continue;
    ScatterPoint point{.x = minutes->mean, .y = top_1->mean, .label = result.row->id};
    if (top_1->count > 1) {
      point.y_low = top_1->mean - top_1->half_width;
      point.y_high = top_1->mean + top_1->half_width;
    }
    series.points.push_back(std::move(point));
  }
  std::sort(series.points.begin(), series.points.end(),
            [](const ScatterPoint& a, const ScatterPoint& b) { return a.x < b.x; });
  return series;
}

/// The published figures as one series per source and hardware, or per system.
class PublishedSeries {
 public:
  /// @param joined whether a line connects the points of the series
  void add(const std::string& label, const PublishedFigures& figures, bool joined) {
    if (!figures.top_1 || !figures.minutes) return;
    auto found = std::ranges::find(all_, label, &ScatterSeries::label);
    if (found == all_.end()) {
      all_.push_back({.label = label,
                      .colour = kOurColour + 1 + static_cast<int>(all_.size()),
                      .mark = Mark::diamond,
                      .joined = joined});
      found = all_.end() - 1;
    }
    found->points.push_back({.x = *figures.minutes, .y = *figures.top_1, .label = ""});
  }

  [[nodiscard]] const std::vector<ScatterSeries>& all() const { return all_; }

 private:
  std::vector<ScatterSeries> all_;
};

std::vector<ScatterSeries> published_series(const ResultTable& table, const std::string& model) {
  PublishedSeries series;
  for (const TableRow& row : table.rows) {
    if (row.model != model) continue;
    for (const PublishedFigures& figures : row.published)
      series.add(fmt::format("{}, {}", figures.source, figures.hardware), figures, true);
  }
  for (const OtherSystem& other : table.others) {
    if (other.model == model) series.add(other.system, other.figures, false);
  }
  return series.all();
}

std::string frontier_chart(const ResultTable& table, const std::vector<RowResult>& results,
                           const std::string& model) {
  ScatterChart chart{.title = model + ": accuracy over time",
                     .x = {.label = "minutes", .scale = Scale::logarithmic},
                     .y = {.label = "top-1"}};
  chart.series = published_series(table, model);
  chart.series.insert(chart.series.begin(), our_series(results, model));
  return scatter_chart_svg(chart);
}

std::vector<LinePoint> points_of(const std::vector<CurvePoint>& curve, double CurvePoint::*x) {
  std::vector<LinePoint> line;
  for (const CurvePoint& point : curve) line.push_back({point.*x, point.top_1});
  return line;
}

/// Accuracy over epochs or minutes: for each row, a line of its first seed. Published curves are
/// dashed, in the colour of their row.
std::string curve_chart(const ResultTable& table, const std::vector<RowResult>& results,
                        const std::string& model, double CurvePoint::*x, const char* label) {
  LineChart chart{.title = fmt::format("{}: top-1 over {}", model, label),
                  .x = {.label = label, .integer = x == &CurvePoint::epochs},
                  .y = {.label = "top-1"}};
  int colour = 0;
  for (const RowResult& result : results) {
    if (result.row->model != model) continue;
    if (const auto& ours = result.runs.front().curve; !ours.empty())
      chart.series.push_back(
          {.label = result.row->id, .points = points_of(ours, x), .colour = colour});
    if (const auto found = table.curves.find(result.row->id); found != table.curves.end()) {
      chart.series.push_back({.label = result.row->id + ", published",
                              .points = points_of(found->second, x),
                              .colour = colour,
                              .dashed = true});
    }
    ++colour;
  }
  return line_chart_svg(chart);
}

HtmlFigure best_figure(const std::vector<RowResult>& results) {
  std::optional<MeanInterval> best;
  std::string note;
  for (const RowResult& result : results) {
    const auto top_1 = result.figure("top_1");
    if (!top_1 || (best && top_1->mean <= best->mean)) continue;
    best = top_1;
    note = fmt::format("{} in {} minutes", result.row->id, minutes_text(result.minutes()));
  }
  return {figure_text(best, 4), "best top-1 here", note};
}

/// Returns nothing if no row has a published top-1 accuracy.
std::optional<HtmlFigure> best_published_figure(const std::vector<RowResult>& results) {
  std::optional<double> best;
  std::string note;
  for (const RowResult& result : results) {
    const PublishedFigures theirs = result.row->compared_with();
    if (!theirs.top_1 || theirs.top_1 <= best) continue;
    best = theirs.top_1;
    note = fmt::format("{} in {} minutes, {}", result.row->id, minutes_text(theirs.minutes),
                       theirs.hardware);
  }
  if (!best) return std::nullopt;
  return HtmlFigure{figure_text(best, 4), "best published top-1", note};
}

bool is_trained(const RowResult& result) {
  return std::ranges::all_of(result.runs,
                             [](const SeedRun& run) { return run.status == TrialStatus::done; });
}

/// Adds the figures at the top: the best row, the best published result, and how much has been
/// trained.
void add_summary(HtmlPage& page, const std::vector<RowResult>& results) {
  double minutes = 0;
  for (const RowResult& result : results) {
    if (const auto own = result.minutes()) minutes += own->mean * own->count;
  }
  std::vector<HtmlFigure> figures = {best_figure(results)};
  if (const auto published = best_published_figure(results)) figures.push_back(*published);
  figures.push_back(
      {fmt::format("{} of {}", std::ranges::count_if(results, is_trained), results.size()),
       "rows trained", ""});
  figures.push_back({minutes_text(std::optional(minutes)), "minutes",
                     "training and evaluation of all finished runs"});
  page.figures(figures);
}

/// One figure of a row: our result and the published figure.
struct FigurePair {
  std::string name;
  std::string ours;
  std::string theirs;
};

std::vector<FigurePair> compare(const RowResult& result) {
  const PublishedFigures theirs = result.row->compared_with();
  return {{"top-1", figure_text(result.figure("top_1"), 4), figure_text(theirs.top_1, 4)},
          {"top-5", figure_text(result.figure("top_5"), 4), figure_text(theirs.top_5, 4)},
          {"minutes", minutes_text(result.minutes()), minutes_text(theirs.minutes)}};
}

/// For each figure of compare(), whether it is published for any row.
std::vector<bool> published_figures(const std::vector<RowResult>& results) {
  std::vector<bool> published(3, false);
  for (const RowResult& result : results) {
    const auto figures = compare(result);
    for (std::size_t i = 0; i < figures.size(); ++i)
      published[i] = published[i] || figures[i].theirs != kNoFigure;
  }
  return published;
}

/// A row of the result table. `published` says which figures have a second column for the published
/// value.
std::vector<HtmlCell> result_row(const RowResult& result, const std::vector<bool>& published) {
  std::vector<HtmlCell> row = {{.text = result.row->id}, {result.row->model}};
  // The link is relative to the page, which is in the folder of the run folders.
  if (const auto run = std::ranges::find(result.runs, true, &SeedRun::has_report);
      run != result.runs.end())
    row[0].link = run->trial.id + "/report.html";
  const auto figures = compare(result);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    row.push_back({.text = figures[i].ours, .bold = true});
    if (published[i]) row.push_back({figures[i].theirs});
  }
  row.push_back({result.progress()});
  return row;
}

HtmlTable result_table(const std::vector<RowResult>& results) {
  HtmlTable html{.columns = {{"row"}, {"model"}}};
  if (results.empty()) return html;
  const std::vector<bool> published = published_figures(results);
  const auto names = compare(results.front());
  for (std::size_t i = 0; i < names.size(); ++i) {
    html.columns.push_back({names[i].name, true});
    if (published[i]) html.columns.push_back({"published", true});
  }
  html.columns.push_back({"seeds", true});
  for (const RowResult& result : results) html.rows.push_back(result_row(result, published));
  return html;
}

void add_differences(HtmlPage& page, const ResultTable& table,
                     const std::vector<RowResult>& results) {
  HtmlTable html{.columns = {{"rows"}, {"what differs from the published runs"}}};
  for (const auto& [rows, line] : joined_differences(table, results))
    html.rows.push_back({{rows}, {line}});
  if (html.rows.empty()) return;
  page.section("What differs");
  page.table(html);
}

HtmlTable others_table(const ResultTable& table) {
  HtmlTable others{.columns = {{"system"},
                               {"model"},
                               {"top-1", true},
                               {"minutes", true},
                               {"hardware"},
                               {"source"},
                               {"note"}}};
  for (const OtherSystem& other : table.others) {
    others.rows.push_back({{other.system},
                           {other.model},
                           {figure_text(other.figures.top_1, 4)},
                           {minutes_text(other.figures.minutes)},
                           {other.figures.hardware},
                           {other.figures.source},
                           {other.figures.note}});
  }
  return others;
}

HtmlTable sources_table(const ResultTable& table) {
  HtmlTable sources{.columns = {{"source"}, {"what"}, {"date"}, {"address"}}};
  for (const FigureSource& source : table.sources)
    sources.rows.push_back({{source.id}, {source.title}, {source.date}, {source.url}});
  return sources;
}

void add_published(HtmlPage& page, const ResultTable& table) {
  page.section("Other systems and sources");
  for (const HtmlTable& part : {others_table(table), sources_table(table)}) {
    if (!part.rows.empty()) page.table(part);
  }
}

}  // namespace

std::string table_page(const ResultTable& table, const std::vector<RowResult>& results) {
  HtmlPage page(table.title,
                "Results of this machine and published results. Minutes include training and "
                "evaluation; ± is the half-width of the 95 % confidence interval over seeds.");
  const std::vector<std::string> models = models_of(results);
  add_summary(page, results);
  std::vector<std::string> frontiers;
  for (const std::string& model : models)
    frontiers.push_back(frontier_chart(table, results, model));
  page.charts(frontiers);
  page.section("Results");
  page.table(result_table(results));
  page.section("Accuracy after each epoch");
  for (const std::string& model : models) {
    page.charts({curve_chart(table, results, model, &CurvePoint::epochs, "epochs"),
                 curve_chart(table, results, model, &CurvePoint::minutes, "minutes")});
  }
  add_differences(page, table, results);
  add_published(page, table);
  return page.text();
}

}  // namespace precast::tools
