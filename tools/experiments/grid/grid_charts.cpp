#include "tools/experiments/grid/grid_charts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "framework/core/format.h"
#include "framework/core/parse_number.h"
#include "tools/report/chart/heat_map.h"
#include "tools/report/chart/parallel_coordinates.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The maximum number of rows and of columns of a heat map. Larger heat maps are unreadable and do
/// not fit on a page.
constexpr std::size_t kMaxCells = 20;
/// An axis with at most this many values shows them at equal distances and labels each of them.
constexpr std::size_t kMaxNames = 8;
/// An axis with at least this ratio of maximum to minimum is logarithmic.
constexpr double kMinLogRatio = 30;
constexpr std::size_t kMaxLines = 500, kMaxCurves = 200, kNamedCurves = 3;

std::optional<double> number_of(const std::string& text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Sets the labels and numbers of the axes, and sorts values that are numbers.
void set_labels_and_numbers(std::vector<GridAxis>& axes) {
  const auto last_part = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  for (GridAxis& axis : axes) {
    const auto alike = std::ranges::count_if(
        axes, [&](const GridAxis& other) { return last_part(other.key) == last_part(axis.key); });
    axis.label = alike > 1 ? axis.key : last_part(axis.key);
    if (!std::ranges::all_of(axis.values,
                             [](const auto& text) { return number_of(text).has_value(); }))
      continue;
    std::ranges::sort(axis.values, {}, [](const auto& text) { return *number_of(text); });
    for (const std::string& text : axis.values) axis.numbers.push_back(*number_of(text));
  }
}

std::string setting_of(const ordered_json& entry, const GridAxis& axis) {
  return entry.at("settings").at(axis.key);
}

using IndexPair = std::pair<std::size_t, std::size_t>;

IndexPair indices_of(const ordered_json& entry, const GridAxis& x, const GridAxis& y) {
  return {x.position(setting_of(entry, x)), y.position(setting_of(entry, y))};
}

/// The number of combinations of the two axes' values that occur in the grid.
std::size_t combinations(const ordered_json& grid, const GridAxis& x, const GridAxis& y) {
  std::map<IndexPair, int> seen;
  for (const ordered_json& entry : grid.at("ranking")) ++seen[indices_of(entry, x, y)];
  return seen.size();
}

/// Returns the x and y axes of the heat map; nothing if no two axes are suitable.
std::optional<IndexPair> choose_axes(const ordered_json& grid, const std::vector<GridAxis>& axes) {
  std::optional<IndexPair> best;
  std::size_t most = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    for (std::size_t k = i + 1; k < axes.size(); ++k) {
      const std::size_t cells = axes[i].values.size() * axes[k].values.size();
      if (std::max(axes[i].values.size(), axes[k].values.size()) > kMaxCells || cells <= most)
        continue;
      // A map that is half empty comes from axes that are zipped or drawn together.
      if (2 * combinations(grid, axes[i], axes[k]) <= cells) continue;
      most = cells;
      // The axis with more values is horizontal.
      best = axes[i].values.size() >= axes[k].values.size() ? IndexPair{i, k} : IndexPair{k, i};
    }
  }
  return best;
}

std::string averaged_over(const std::vector<GridAxis>& axes, const IndexPair& shown) {
  std::vector<std::string> others;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != shown.first && i != shown.second) others.push_back(axes[i].label);
  }
  if (others.empty()) return "";
  return fmt::format("Each cell of the heat map is the mean, over {}, of the results so far.",
                     fmt::join(others, ", "));
}

ParallelAxis parallel_axis(const GridAxis& axis) {
  ParallelAxis drawn{.label = axis.label};
  if (axis.values.size() <= kMaxNames || axis.numbers.empty()) {
    drawn.names = axis.values;
  } else if (axis.numbers.front() > 0 &&
             axis.numbers.back() / axis.numbers.front() >= kMinLogRatio) {
    drawn.scale = Scale::logarithmic;
  }
  return drawn;
}

std::string settings_text(const ordered_json& entry, const std::vector<GridAxis>& axes) {
  std::vector<std::string> parts;
  for (const GridAxis& axis : axes)
    parts.push_back(fmt::format("{} {}", axis.label, setting_of(entry, axis)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Returns the trials that have a curve: first those with a result, then those without a result. In
/// both groups, better trials come first.
std::vector<std::string> by_result(const ordered_json& grid,
                                   const std::map<std::string, std::vector<LinePoint>>& curves) {
  const double sign = grid.at("maximise").get<bool>() ? -1 : 1;
  using SortKey = std::pair<int, double>;
  std::vector<std::pair<SortKey, std::string>> order;
  for (const ordered_json& trial : grid.at("trials")) {
    const auto curve = curves.find(trial.at("trial"));
    if (curve == curves.end() || curve->second.empty()) continue;
    const bool done = trial.contains("value") && trial.at("value").is_number();
    const ordered_json value = done ? trial.at("value") : trial.value("last_value", ordered_json());
    const double figure = value.is_number() ? sign * value.get<double>() : HUGE_VAL;
    order.push_back({{done ? 0 : 1, figure}, curve->first});
  }
  std::ranges::stable_sort(order, {}, &std::pair<SortKey, std::string>::first);
  std::vector<std::string> trials;
  for (auto& [position, trial] : order) trials.push_back(std::move(trial));
  return trials;
}

/// Mean results by the values of two axes, averaged over the other settings.
std::map<IndexPair, double> means_by(const ordered_json& grid, const GridAxis& x,
                                     const GridAxis& y) {
  std::map<IndexPair, std::vector<double>> results;
  for (const ordered_json& entry : grid.at("ranking")) {
    if (entry.contains("mean")) results[indices_of(entry, x, y)].push_back(entry.at("mean"));
  }
  std::map<IndexPair, double> means;
  for (const auto& [indices, values] : results)
    means[indices] =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return means;
}

/// The values at which a combination's line crosses the axes; the last axis is the result.
std::vector<double> line_values(const ordered_json& entry, const std::vector<GridAxis>& axes,
                                const ParallelCoordinates& chart) {
  std::vector<double> values;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t position = axes[i].position(setting_of(entry, axes[i]));
    values.push_back(chart.axes[i].names.empty() ? axes[i].numbers[position]
                                                 : static_cast<double>(position));
  }
  values.push_back(entry.at("mean"));
  return values;
}

}  // namespace

std::size_t GridAxis::position(const std::string& value) const {
  return static_cast<std::size_t>(std::ranges::find(values, value) - values.begin());
}

std::vector<GridAxis> grid_axes(const ordered_json& grid) {
  std::vector<GridAxis> axes;
  std::set<std::pair<std::string, std::string>> seen;
  // Seeds are repetitions, not a setting.
  for (const auto& [key, value] : grid.at("ranking").at(0).at("settings").items())
    axes.push_back({key, {}, {}, {}});
  for (const ordered_json& trial : grid.at("trials")) {
    for (GridAxis& axis : axes) {
      const std::string value = setting_of(trial, axis);
      if (seen.emplace(axis.key, value).second) axis.values.push_back(value);
    }
  }
  std::erase_if(axes, [](const GridAxis& axis) { return axis.values.size() < 2; });
  set_labels_and_numbers(axes);
  return axes;
}

GridChart grid_heat_map(const ordered_json& grid) {
  const std::vector<GridAxis> axes = grid_axes(grid);
  const auto shown = choose_axes(grid, axes);
  if (!shown) return {};
  const GridAxis &x = axes[shown->first], &y = axes[shown->second];
  const std::string metric = grid.at("metric");
  HeatMap map{.title = fmt::format("{} by {} and {}", metric, x.label, y.label),
              .x_label = x.label,
              .y_label = y.label,
              .columns = x.values,
              .rows = {y.values.rbegin(), y.values.rend()},
              .values = {},
              .value_label = metric};
  const std::map<IndexPair, double> means = means_by(grid, x, y);
  if (means.empty()) return {};
  for (std::size_t row = y.values.size(); row-- > 0;) {
    map.values.emplace_back();
    for (std::size_t column = 0; column < x.values.size(); ++column) {
      const auto mean = means.find({column, row});
      map.values.back().push_back(mean != means.end() ? mean->second : std::nan(""));
    }
  }
  return {heat_map_svg(map), averaged_over(axes, *shown)};
}

GridChart grid_parallel_coordinates(const ordered_json& grid) {
  const std::vector<GridAxis> axes = grid_axes(grid);
  const std::string metric = grid.at("metric");
  ParallelCoordinates chart{.title = "Settings and " + metric};
  for (const GridAxis& axis : axes) chart.axes.push_back(parallel_axis(axis));
  chart.axes.push_back({.label = metric});
  std::size_t results = 0;
  for (const ordered_json& entry : grid.at("ranking")) {
    if (!entry.contains("mean") || ++results > kMaxLines) continue;
    const bool best = results == 1 && entry.at("complete");
    chart.lines.push_back({.label = settings_text(entry, axes),
                           .values = line_values(entry, axes, chart),
                           .emphasised = best});
  }
  if (chart.lines.size() < 2 || axes.empty()) return {};
  GridChart drawn{parallel_coordinates_svg(chart), ""};
  if (chart.lines.front().emphasised) drawn.remark = "The thick line is the best combination.";
  if (results > kMaxLines)
    drawn.remark += fmt::format(" The best {} of {} are drawn.", kMaxLines, results);
  return drawn;
}

GridChart grid_curves(const ordered_json& grid, const std::string& figure,
                      const std::map<std::string, std::vector<LinePoint>>& curves) {
  const std::vector<std::string> trials = by_result(grid, curves);
  if (trials.empty()) return {};
  LineChart chart{.title = figure + " after each epoch",
                  .x = {.label = "epochs", .integer = true},
                  .y = {.label = figure},
                  .width = 1180,
                  .height = 400};
  const std::size_t named = std::min(kNamedCurves, trials.size()), rest = trials.size() - named;
  const std::size_t drawn = std::min(kMaxCurves, rest);
  // The other curves are chosen evenly from good to bad, and drawn from bad to good, so that better
  // curves are on top.
  for (std::size_t i = drawn; i-- > 0;) {
    chart.series.push_back({.label = trials[named + i * rest / drawn],
                            .points = curves.at(trials[named + i * rest / drawn]),
                            .colour = kSeriesColours - 1,
                            .faint = true});
  }
  for (std::size_t i = 0; i < named; ++i) {
    chart.series.push_back(
        {.label = trials[i], .points = curves.at(trials[i]), .colour = static_cast<int>(i)});
  }
  std::string remark =
      fmt::format("In colour: the best {} of {}.", named, format_count(trials.size(), "trial"));
  if (drawn < rest) remark += fmt::format(" Of the other {}, {} are drawn.", rest, drawn);
  return {line_chart_svg(chart), rest > 0 ? remark : ""};
}

}  // namespace precast::tools
