#include "tools/bench/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <climits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/progress.h"
#include "framework/core/system.h"
#include "tools/bench/loader_run.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/stopwatch.h"
#include "tools/cli/text_table.h"
#include "tools/report/chart/bar_chart.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// A setting and its measurements, one per round.
struct Point {
  LoaderSetting setting;
  std::vector<ordered_json> runs{};

  [[nodiscard]] std::vector<double> figures(const char* key) const {
    std::vector<double> values;
    for (const ordered_json& run : runs) values.push_back(run.at(key).get<double>());
    return values;
  }
  [[nodiscard]] double middle(const char* key) const { return median(figures(key)); }
  /// The median over rounds of the ratio to another point.
  [[nodiscard]] double ratio(const char* key, const Point& other) const {
    std::vector<double> ratios = figures(key);
    const std::vector<double> base = other.figures(key);
    for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= base[i];
    return median(ratios);
  }
  /// Names and values of what the sweep varies: all others are the same in every point.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> changing(
      const std::vector<Point>& sweep) const {
    auto values = setting.values();
    std::erase_if(values, [&](const auto& value) {
      return std::ranges::all_of(sweep, [&](const Point& point) {
        const auto others = point.setting.values();
        return std::ranges::find(others, value) != others.end();
      });
    });
    return values;
  }
};

std::string in_words(const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> words;
  for (const auto& [name, value] : values) words.push_back(name + " " + value);
  return fmt::format("{}", fmt::join(words, ", "));
}

/// @param done number of finished measurements out of `all`, in `seconds`; `setting` is next
std::string progress_text(std::size_t done, std::size_t all, double seconds,
                          const LoaderSetting& setting) {
  std::string text =
      fmt::format("measurement {} of {} ({})", done + 1, all, in_words(setting.values()));
  if (done == 0) return text;
  const double each = seconds / static_cast<double>(done);
  return text +
         fmt::format(", about {} left", format_duration(each * static_cast<double>(all - done)));
}

/// Measures every point once per round.
void measure_all(const std::string& file, const LoaderEffort& effort, int rounds,
                 std::vector<Point>& points) {
  Progress progress;
  const Stopwatch watch;
  const std::size_t all = points.size() * static_cast<std::size_t>(rounds);
  std::size_t done = 0;
  for (int round = 0; round < rounds; ++round) {
    for (Point& point : points) {
      const auto show = [&] {
        if (progress.due()) progress.show(progress_text(done, all, watch.seconds(), point.setting));
      };
      show();
      // Far from the other rounds' passes, so that each has its own orders and crops.
      const std::int64_t epoch = 1 + std::int64_t{round} * 1'000'000;
      point.runs.push_back(run_loaders(file, point.setting, effort, epoch, show));
      ++done;
    }
  }
}

/// The samples that any measurement found damaged, by number, without duplicates.
ordered_json all_replaced(const std::vector<Point>& points) {
  std::map<std::uint64_t, ordered_json> replaced;
  for (const Point& point : points)
    for (const ordered_json& run : point.runs)
      for (const ordered_json& entry : run.at("replaced"))
        replaced.emplace(entry[0].get<std::uint64_t>(), entry);
  ordered_json list = ordered_json::array();
  for (const auto& [sample, entry] : replaced) list.push_back(entry);
  return list;
}

ordered_json as_json(const Point& point, const Point& first) {
  ordered_json settings;
  for (const auto& [name, value] : point.setting.values()) {
    const bool number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
    settings[name] = number ? ordered_json(std::stoll(value)) : ordered_json(value);
  }
  ordered_json all = {{"settings", settings}};
  for (const char* key : {"images_per_second", "images_per_cpu_second"}) {
    const std::vector<double> values = point.figures(key);
    all[key] = median(values);
    all[std::string(key) + "_least"] = std::ranges::min(values);
    all[std::string(key) + "_most"] = std::ranges::max(values);
    all[std::string(key) + "_to_first"] = point.ratio(key, first);
  }
  for (const char* key : {"peak_resident_bytes", "proportional_bytes", "anonymous_bytes"})
    all[key] = static_cast<std::int64_t>(point.middle(key));
  all["runs"] = point.runs;
  return all;
}

bool has_more_threads_than_cores(const Point& point) {
  return point.setting.processes * point.setting.workers > usable_cores();
}

std::vector<std::string> head_of(const std::vector<Point>& points) {
  std::vector<std::string> head;
  for (const auto& [name, value] : points[0].changing(points)) head.push_back(name);
  head.insert(head.end(), {"img/s", "least - most", "img/CPU-s", "least - most", "to first",
                           "to first/CPU-s", "cores busy", "own MB", "peak MB"});
  return head;
}

std::vector<std::string> row_of(const Point& point, const std::vector<Point>& points) {
  const auto span = [](const std::vector<double>& values) {
    return fmt::format("{:.0f} - {:.0f}", std::ranges::min(values), std::ranges::max(values));
  };
  const auto rate = "images_per_second", cpu_rate = "images_per_cpu_second";
  const double busy = point.middle(rate) / point.middle(cpu_rate);
  std::vector<std::string> row;
  for (const auto& [name, value] : point.changing(points)) row.push_back(value);
  row.insert(row.end(),
             {fmt::format("{:.0f}", point.middle(rate)), span(point.figures(rate)),
              fmt::format("{:.0f}", point.middle(cpu_rate)), span(point.figures(cpu_rate)),
              fmt::format("{:.2f}", point.ratio(rate, points[0])),
              fmt::format("{:.2f}", point.ratio(cpu_rate, points[0])),
              fmt::format("{:.2f}{}", busy, has_more_threads_than_cores(point) ? "*" : ""),
              fmt::format("{:.0f}", point.middle("anonymous_bytes") / 1e6),
              fmt::format("{:.0f}", point.middle("peak_resident_bytes") / 1e6)});
  return row;
}

void print_replaced(const ordered_json& replaced) {
  if (replaced.empty()) return;
  fmt::print("\n{} cannot be decoded and {} replaced by the next intact one:\n",
             format_count(replaced.size(), "sample"), replaced.size() == 1 ? "was" : "were");
  for (const ordered_json& entry : replaced)
    fmt::print("{} replaced by {}: {}\n", entry[0].get<std::uint64_t>(),
               entry[1].get<std::uint64_t>(), entry[2].get<std::string>());
}

void print_points(const std::string& file, std::uint64_t samples,
                  const std::vector<Point>& points) {
  std::vector<std::vector<std::string>> rows = {head_of(points)};
  for (const Point& point : points) rows.push_back(row_of(point, points));
  auto same = points[0].setting.values();
  for (const auto& value : points[0].changing(points)) std::erase(same, value);
  fmt::print("{}: {}; {}; medians of {}; {} of {}\n\n", file, format_count(samples, "sample"),
             in_words(same), format_count(points[0].runs.size(), "round"),
             format_count(static_cast<std::uint64_t>(usable_cores()), "core"), processor_name());
  print_text_table(rows);
  if (std::ranges::any_of(points, has_more_threads_than_cores))
    fmt::print("\n* more loader threads than cores\n");
  print_replaced(all_replaced(points));
}

std::string chart(const std::string& file, const std::vector<Point>& points) {
  std::vector<Bar> bars;
  for (const Point& point : points) {
    bars.push_back(
        {.label = in_words(point.changing(points)),
         .value = point.middle("images_per_second"),
         .note = fmt::format("{:.0f} img/CPU-s", point.middle("images_per_cpu_second"))});
  }
  return svg_file(bar_chart_svg(
      {.title = "Batches of " + file, .unit = "img/s", .bars = bars, .scale = Scale::logarithmic}));
}

LoaderEffort read_effort(const Arguments& arguments) {
  const bool replace =
      find_name("on-corrupt", {"fail", "replace"}, arguments.text("on-corrupt")) == 1;
  const auto on_corrupt = replace ? data::OnCorrupt::replace : data::OnCorrupt::fail;
  const LoaderEffort effort = {.val = arguments.has("val"),
                               .passes = arguments.get<std::int64_t>("passes"),
                               .seconds = arguments.get<double>("seconds"),
                               .samples = arguments.get<std::int64_t>("pass-samples"),
                               .cold = arguments.has("cold"),
                               .on_corrupt = on_corrupt,
                               .verify = arguments.has("verify"),
                               .layouts = read_layouts(arguments)};
  check_range("passes", effort.passes, 0, 1'000'000);
  check_range("pass-samples", effort.samples, 0, INT_MAX);
  if (!(effort.seconds > 0 && effort.seconds <= 3600))
    throw ConfigError(fmt::format("--seconds: expected above 0 to 3600, got {}", effort.seconds));
  return effort;
}

void add_effort_options(po::options_description& options) {
  options.add_options()("val", "images as in evaluation; default: random resized crop and flip")(
      "runs", po::value<int>()->default_value(5), kRunsHelp)(
      "seconds", po::value<double>()->default_value(2), kSecondsHelp)(
      "passes", po::value<std::int64_t>()->default_value(0),
      "passes per measurement; in place of --seconds")(
      "pass-samples", po::value<std::int64_t>()->default_value(0),
      "samples per pass; to shorten passes over large files; 0: all")(
      "cold",
      "read from disk; without a warm-up pass, after the file was dropped from the page "
      "cache")("on-corrupt", po::value<std::string>()->default_value("fail"),
               "what to do with damaged samples; fail: stop; replace: use the next intact sample")(
      "verify", "verify the checksums of the values that are read")(
      "svg", po::value<std::string>()->value_name("FILE"), kSvgHelp)("json", kJsonHelp);
}

Arguments loader_arguments() {
  Arguments arguments(
      "bench loader FILE.beton [options]",
      "Loads the dataset and discards the batches, as fast as possible. Options with several "
      "values "
      "(--workers 1,2,4 --batch-size 16,256) measure all combinations, alternately and in separate "
      "processes. The first pass of each is a warm-up and is not counted.");
  arguments.positional("FILE.beton", "the dataset");
  add_sweep_options(arguments.options());
  add_effort_options(arguments.options());
  add_layout_option(arguments.options());
  arguments.example("precast bench loader train.beton --workers 1,2,4 --batch-size 16,256");
  arguments.example("precast bench loader train.beton --processes 1,8 --svg loader.svg");
  arguments.exit_codes({3, 10, 130, 143});
  return arguments;
}

ordered_json sweep_json(const std::string& file, std::uint64_t samples, const LoaderEffort& effort,
                        int rounds, const std::vector<Point>& points) {
  ordered_json all = {{"file", file},
                      {"samples", samples},
                      {"processor", processor_name()},
                      {"cores", usable_cores()},
                      {"rounds", rounds},
                      {"cold", effort.cold},
                      {"val", effort.val},
                      {"replaced", all_replaced(points)},
                      {"points", ordered_json::array()}};
  for (const Point& point : points) all["points"].push_back(as_json(point, points[0]));
  return all;
}

}  // namespace

int run_bench_loader(const std::vector<std::string>& args) {
  Arguments arguments = loader_arguments();
  if (!arguments.parse(args)) return 0;
  const auto rounds = arguments.get<int>("runs");
  check_range("runs", rounds, 1, 10'000);
  const LoaderEffort effort = read_effort(arguments);
  std::vector<Point> points;
  for (const LoaderSetting& setting : read_sweep(arguments)) points.push_back({setting});
  const std::string file = arguments.text("FILE.beton");
  // Opened here once, so that a wrong file is reported at once, and closed again: mapped pages stay
  // in the page cache.
  const std::uint64_t samples =
      data::BetonReader(file, data::BlobAccess::mapped, effort.layouts).size();
  measure_all(file, effort, rounds, points);
  if (arguments.has("svg")) write_file(arguments.text("svg"), chart(file, points));
  if (arguments.has("json")) {
    print_json(sweep_json(file, samples, effort, rounds, points));
  } else {
    print_points(file, samples, points);
  }
  return 0;
}

}  // namespace precast::tools
