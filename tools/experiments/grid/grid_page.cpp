#include "tools/experiments/grid/grid_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "framework/core/file.h"
#include "framework/core/format.h"
#include "tools/experiments/grid/grid_charts.h"
#include "tools/experiments/grid/loss_axes.h"
#include "tools/experiments/grid/ranking.h"
#include "tools/experiments/grid/recipe_metric.h"
#include "tools/experiments/trial/run_log.h"
#include "tools/experiments/trial/trial.h"
#include "tools/report/html_page.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The number of rows of a table that are visible at first, and the maximum number of rows. A page
/// with more rows is slow to open.
constexpr std::size_t kShownRows = 50, kMaxRows = 1000;

int count_of(const ordered_json& grid, const char* status) {
  return grid.at("counts").value(status, 0);
}

std::string settings_text(const ordered_json& entry) {
  std::string text;
  for (const auto& [key, value] : entry.at("settings").items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value.get<std::string>());
  return text;
}

std::string best_note(const ordered_json& best, const std::string& metric) {
  const ordered_json& half = best.at("half_width_95");
  return half.is_number() ? fmt::format("± {} over {}; {}", figure_text(half, metric),
                                        format_count(best.at("count").get<std::uint64_t>(), "seed"),
                                        settings_text(best))
                          : settings_text(best);
}

/// A link to the run folder of a trial, relative to the folder of the page.
HtmlCell trial_link(const std::string& trial) {
  return {.text = trial, .link = "runs/" + trial + "/"};
}

void add_summary(HtmlPage& page, const Sweep& sweep, const ordered_json& grid) {
  const ordered_json& best = grid.at("ranking").at(0);
  std::vector<HtmlFigure> figures = {
      {best.at("complete") ? figure_text(best.at("mean"), sweep.metric) : "-",
       "best " + sweep.metric,
       best.at("complete") ? best_note(best, sweep.metric)
                           : "no combination has results for all its trials yet"},
      {fmt::format("{} of {}", count_of(grid, "done"), grid.at("trials").size()), "trials done",
       statuses_text(grid.at("counts"))}};
  const double slot_time = grid.at("slot_seconds"), busy = grid.at("busy_seconds");
  if (slot_time > 0) {
    figures.push_back({fmt::format("{:.1f} %", 100 * busy / slot_time), "slots busy",
                       fmt::format("slot time: {} used by trials, {} in total",
                                   format_duration(busy), format_duration(slot_time))});
    figures.push_back({format_duration(grid.at("wall_seconds")), "wall time",
                       "of all runs of the grid command, without the pauses between them"});
  }
  page.figures(figures);
}

void add_notices(HtmlPage& page, const std::vector<std::string>& warnings,
                 const ordered_json& grid) {
  for (const std::string& text : warnings) page.notice(text);
  const int running = count_of(grid, "running"), waiting = count_of(grid, "waiting");
  if (running + waiting == 0) return;
  page.notice(
      fmt::format("The grid has not finished: {} of its trials are running, {} are waiting. This "
                  "page shows the results so far.",
                  running, waiting));
}

using Rows = std::vector<std::vector<HtmlCell>>;

/// Shows the first kShownRows rows; further rows, up to kMaxRows, are folded.
void add_rows(HtmlPage& page, HtmlTable table, const Rows& rows) {
  const std::size_t shown = std::min(kShownRows, rows.size());
  const std::size_t all = std::min(kMaxRows, rows.size());
  const auto part = [&](std::size_t from, std::size_t to) {
    table.rows = {rows.begin() + static_cast<std::ptrdiff_t>(from),
                  rows.begin() + static_cast<std::ptrdiff_t>(to)};
    page.table(table);
  };
  part(0, shown);
  if (all > shown) {
    page.begin_details(fmt::format("{} more", all - shown));
    part(shown, all);
    page.end_details();
  }
  if (rows.size() > all) {
    page.paragraph(fmt::format("{} more are not shown: see `precast grid --status --json`.",
                               rows.size() - all));
  }
}

std::vector<HtmlCell> ranking_row(const ordered_json& entry, const std::string& metric) {
  std::vector<HtmlCell> row = {{.text = rank_text(entry)}};
  for (const auto& [key, value] : entry.at("settings").items()) row.push_back({.text = value});
  row.push_back({.text = mean_text(entry, metric, "±"), .bold = entry.at("complete")});
  const ordered_json& trials = entry.at("trials");
  const std::string statuses = statuses_text(entry.at("statuses"));
  row.push_back(trials.size() == 1 ? HtmlCell{statuses, trial_link(trials.at(0)).link}
                                   : HtmlCell{statuses});
  return row;
}

void add_ranking(HtmlPage& page, const Sweep& sweep, const ordered_json& grid) {
  HtmlTable table{.columns = {{"rank", true}}};
  for (const std::string& key : sweep.varied) table.columns.push_back({key});
  table.columns.push_back({sweep.metric, true});
  table.columns.push_back({"trials"});
  Rows rows;
  for (const ordered_json& entry : grid.at("ranking"))
    rows.push_back(ranking_row(entry, sweep.metric));
  page.section("Ranking");
  page.paragraph(
      fmt::format("By {}, {} first; ± is the half-width of the 95 % confidence interval over "
                  "seeds. A combination has no rank if any of its trials has no result.",
                  sweep.metric, sweep.maximise ? "the largest" : "the smallest"));
  add_rows(page, std::move(table), rows);
  if (const std::string text = shared_loaders_text(grid); !text.empty()) page.paragraph(text);
}

void add_charts(HtmlPage& page, const std::string& section, const std::vector<GridChart>& charts) {
  bool begun = false;
  for (const GridChart& chart : charts) {
    if (chart.svg.empty()) continue;
    if (!begun) page.section(section);
    begun = true;
    page.charts({chart.svg});
    if (!chart.remark.empty()) page.paragraph(chart.remark);
  }
}

std::string last_figure(const ordered_json& trial, const std::string& metric) {
  if (!trial.contains("last_epoch")) return "-";
  return fmt::format("{} after {}", figure_text(trial.value("last_value", ordered_json()), metric),
                     format_count(trial.at("last_epoch").get<std::uint64_t>() + 1, "epoch"));
}

void add_without_result(HtmlPage& page, const Sweep& sweep, const ordered_json& grid) {
  HtmlTable table{
      .columns = {{"trial"}, {"status"}, {"reason"}, {"last figure"}, {"starts", true}}};
  Rows rows;
  for (const ordered_json& trial : grid.at("trials")) {
    if (!trial.contains("reason")) continue;
    rows.push_back({trial_link(trial.at("trial")),
                    {.text = trial.at("status")},
                    {.text = trial.at("reason")},
                    {.text = last_figure(trial, sweep.metric)},
                    {.text = std::to_string(trial.at("starts").get<int>())}});
  }
  if (rows.empty()) return;
  page.section("Trials that ended without a result");
  add_rows(page, std::move(table), rows);
}

void add_trials(HtmlPage& page, const Sweep& sweep, const ordered_json& grid) {
  HtmlTable table{.columns = {{"trial"},
                              {"status"},
                              {sweep.metric, true},
                              {"time", true},
                              {"processor time", true},
                              {"starts", true}}};
  Rows rows;
  for (const ordered_json& trial : grid.at("trials")) {
    const bool begun = trial.at("starts") > 0;
    rows.push_back({begun ? trial_link(trial.at("trial")) : HtmlCell{.text = trial.at("trial")},
                    {.text = trial.at("status")},
                    {.text = figure_text(trial.value("value", ordered_json()), sweep.metric)},
                    {.text = begun ? format_duration(trial.at("seconds")) : "-"},
                    {.text = begun ? format_duration(trial.at("cpu_seconds")) : "-"},
                    {.text = std::to_string(trial.at("starts").get<int>())}});
  }
  page.section("Trials");
  page.begin_details(fmt::format("All {}, with their run folders", rows.size()));
  add_rows(page, std::move(table), rows);
  page.end_details();
}

}  // namespace

GridPage::GridPage(const Sweep& sweep) : sweep_(sweep), warnings_(incomparable_losses(sweep)) {}

std::string GridPage::curve_figure() const {
  return is_per_epoch(sweep_.metric) ? sweep_.metric : "top_1";
}

void GridPage::read_curves(const std::map<std::string, TrialState>& states) {
  const std::string figure = curve_figure();
  for (const Trial& trial : sweep_.trials) {
    const auto state = states.find(trial.id);
    if (state == states.end()) continue;
    const auto [ended, first] = starts_at_end_.try_emplace(trial.id, -1);
    if (ended->second == state->second.starts) continue;
    if (state->second.open_since == 0) ended->second = state->second.starts;
    std::vector<LinePoint>& curve = curves_[trial.id];
    curve.clear();
    RunLog log(trial.run_folder());
    log.refresh();
    for (const auto& [epoch, record] : log.epochs()) {
      const ordered_json value = record.value(figure, ordered_json());
      curve.push_back(
          {static_cast<double>(epoch + 1), value.is_number() ? value.get<double>() : std::nan("")});
    }
  }
}

void GridPage::write(const std::map<std::string, TrialState>& states) {
  if (sweep_.trials.empty() || !std::filesystem::is_directory(sweep_.folder)) return;
  const ordered_json grid = describe_grid(sweep_, states);
  read_curves(states);
  HtmlPage page(
      sweep_.path.stem().string(),
      fmt::format("grid of {} with the recipe {}", format_count(grid.at("trials").size(), "trial"),
                  sweep_.recipe.string()));
  add_summary(page, sweep_, grid);
  add_notices(page, warnings_, grid);
  add_ranking(page, sweep_, grid);
  add_charts(page, "What the settings do", {grid_heat_map(grid), grid_parallel_coordinates(grid)});
  add_charts(page, "Learning", {grid_curves(grid, curve_figure(), curves_)});
  add_without_result(page, sweep_, grid);
  add_trials(page, sweep_, grid);
  write_file(sweep_.folder / "grid.html", page.text());
}

}  // namespace precast::tools
