#include "tools/bench/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <climits>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "tools/bench/loader_point.h"
#include "tools/bench/loader_table.h"
#include "tools/cli/arguments.h"
#include "tools/cli/cpu.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/exec_sibling.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/text_table.h"
#include "tools/plugins/pipeline_options.h"
#include "tools/plugins/plugins.h"
#include "tools/report/chart/bar_chart.h"
#include "tools/report/chart/svg.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// Returns the names and values of the settings that differ between the points of the sweep.
std::vector<std::pair<std::string, std::string>> changing(const LoaderPoint& point,
                                                          const std::vector<LoaderPoint>& sweep) {
  auto values = point.setting.values();
  std::erase_if(values, [&](const auto& value) {
    return std::ranges::all_of(sweep, [&](const LoaderPoint& other) {
      const auto others = other.setting.values();
      return std::ranges::find(others, value) != others.end();
    });
  });
  return values;
}

std::string in_words(const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<std::string> words;
  for (const auto& [name, value] : values) words.push_back(name + " " + value);
  return fmt::format("{}", fmt::join(words, ", "));
}

ordered_json as_json(const LoaderPoint& point, const LoaderPoint& first) {
  ordered_json settings;
  for (const auto& [name, value] : point.setting.values()) {
    const bool number = std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
    settings[name] = number ? ordered_json(std::stoll(value)) : ordered_json(value);
  }
  ordered_json all = {{"settings", settings}};
  all.update(figures_json(point, &first));
  return all;
}

std::vector<std::string> head_of(const std::vector<LoaderPoint>& points) {
  std::vector<std::string> head;
  for (const auto& [name, value] : changing(points[0], points)) head.push_back(name);
  head.insert(head.end(), {"img/s", "min - max", "img/CPU-s", "min - max", "vs first",
                           "vs first/CPU-s", "cores busy", "own MB", "peak MB"});
  if (points[0].run_options.cold) head.emplace_back("cached");
  return head;
}

std::vector<std::string> row_of(const LoaderPoint& point, const std::vector<LoaderPoint>& points) {
  const auto rate = "images_per_second", cpu_rate = "images_per_cpu_second";
  std::vector<std::string> row;
  for (const auto& [name, value] : changing(point, points)) row.push_back(value);
  row.insert(row.end(),
             {fmt::format("{:.0f}", point.median_of(rate)), point.min_max_text(rate),
              fmt::format("{:.0f}", point.median_of(cpu_rate)), point.min_max_text(cpu_rate),
              fmt::format("{:.2f}", point.ratio(rate, points[0])),
              fmt::format("{:.2f}", point.ratio(cpu_rate, points[0])), cores_busy_text(point),
              fmt::format("{:.0f}", point.median_of("anonymous_bytes") / 1e6),
              fmt::format("{:.0f}", point.median_of("peak_resident_bytes") / 1e6)});
  if (point.run_options.cold)
    row.push_back(fmt::format("{:.0f} %", 100 * point.median_of("cached_before")));
  return row;
}

void print_points(const std::string& file, std::uint64_t samples,
                  const std::vector<LoaderPoint>& points) {
  std::vector<std::vector<std::string>> rows = {head_of(points)};
  for (const LoaderPoint& point : points) rows.push_back(row_of(point, points));
  auto same = points[0].setting.values();
  for (const auto& value : changing(points[0], points)) std::erase(same, value);
  fmt::print("{}: {}; {}; medians of {}\n{}\n\n", file, format_count(samples, "sample"),
             in_words(same), format_count(points[0].runs.size(), "round"), cpu_text(cpu_facts()));
  print_text_table(rows);
  if (points.size() > 1) {
    fmt::print(
        "\nvs first: img/s divided by img/s of the first row; vs first/CPU-s: the same for "
        "img/CPU-s; medians over the rounds\n");
  }
  print_threads_note(points);
  print_replaced(points);
}

std::string chart(const std::string& file, const std::vector<LoaderPoint>& points) {
  std::vector<Bar> bars;
  for (const LoaderPoint& point : points) {
    bars.push_back(
        {.label = in_words(changing(point, points)),
         .value = point.median_of("images_per_second"),
         .note = fmt::format("{:.0f} img/CPU-s", point.median_of("images_per_cpu_second"))});
  }
  return svg_file(bar_chart_svg(
      {.title = "Batches of " + file, .unit = "img/s", .bars = bars, .scale = Scale::logarithmic}));
}

LoaderRunOptions read_run_options(const Arguments& arguments) {
  LoaderRunOptions run_options = read_measuring(arguments);
  const bool replace =
      find_name("on-corrupt", {"fail", "replace"}, arguments.text("on-corrupt")) == 1;
  run_options.on_corrupt = replace ? data::OnCorrupt::replace : data::OnCorrupt::fail;
  run_options.verify = arguments.has("verify");
  run_options.layouts = read_layouts(arguments);
  if (auto pipeline = read_pipeline(arguments, /*train=*/!run_options.val))
    run_options.pipeline = std::make_shared<const data::Pipeline>(std::move(*pipeline));
  return run_options;
}

void add_damage_options(po::options_description& options) {
  options.add_options()(
      "on-corrupt", po::value<std::string>()->default_value("fail"),
      "what to do with damaged samples; fail: stop; replace: use the next intact sample")(
      "verify", "verify the checksums of the values that are read");
}

Arguments loader_arguments() {
  Arguments arguments(
      "bench loader FILE.beton|RECIPE.yaml [options]",
      "Loads the dataset and discards the batches, as fast as possible. If options have several "
      "values (--workers 1,2,4 --batch-size 16,256), all combinations are measured, alternately "
      "and in separate processes. Without --cold, the first pass of each measurement is a warm-up "
      "and is not counted. --table measures the rows of a table instead of one file, and writes "
      "the files that the rows need.\n"
      "Given a recipe, the command loads its training set (with --val, its validation set) as "
      "`precast train` does, with the same pipeline, order and threads, and with the batch size of "
      "one rank; each process loads the whole set. Keys of the recipe can be overridden "
      "(--data.order=random). Only the options --config-file, --val, --runs, --seconds, --passes, "
      "--pass-samples, --cold, --image-size, --processes, --svg and --json apply, with at most one "
      "value each.");
  arguments.positional("FILE.beton",
                       "the dataset; with --table: images in any form that `precast write` takes");
  add_sweep_options(arguments.options());
  add_measuring_options(arguments.options());
  add_damage_options(arguments.options());
  add_pipeline_options(arguments.options());
  add_plugin_option(arguments.options());
  add_layout_option(arguments.options());
  add_table_options(arguments.options());
  arguments.example("precast bench loader train.beton --workers 1,2,4 --batch-size 16,256");
  arguments.example("precast bench loader train.beton --processes 1,8 --svg loader.svg");
  arguments.example("precast bench loader train.beton --config-file recipe.yaml");
  arguments.example("precast bench loader recipe.yaml --seconds 5");
  arguments.example("precast bench loader photos.tar --table seeds");
  arguments.exit_codes({3, 10, 129, 130, 143});
  return arguments;
}

ordered_json sweep_json(const std::string& file, std::uint64_t samples, int rounds,
                        const std::vector<LoaderPoint>& points) {
  ordered_json all = {{"file", file}, {"samples", samples}};
  all.update(cpu_json(cpu_facts()));
  all.update({{"rounds", rounds},
              {"cold", points[0].run_options.cold},
              {"val", points[0].run_options.val},
              {"replaced", all_replaced(points)},
              {"points", ordered_json::array()}});
  for (const LoaderPoint& point : points) all["points"].push_back(as_json(point, points[0]));
  return all;
}

int run_sweep(const Arguments& arguments, const LoaderRunOptions& run_options) {
  const std::string file = arguments.text("FILE.beton");
  std::vector<LoaderPoint> points;
  for (const LoaderSetting& setting : read_sweep(arguments))
    points.push_back({in_words(setting.values()), file, setting, run_options});
  // Opens the file once, to report a wrong file immediately. Closes it again, because mapped pages
  // cannot be dropped from the page cache.
  const std::uint64_t samples =
      data::BetonReader(file, data::BlobAccess::mapped, run_options.layouts).size();
  return measure_and_report(arguments, file, samples, std::move(points));
}

/// Whether the argument is --config-file or --config_file; its value is then the next argument.
bool is_config_file(std::string word) {
  std::ranges::replace(word, '_', '-');
  return word == "--config-file";
}

/// Whether the arguments name a recipe. With --help, returns false, because this program prints the
/// help itself.
bool names_recipe(const std::vector<std::string>& args) {
  for (const char* help : {"--help", "-h"})
    if (std::ranges::find(args, help) != args.end()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool is_yaml = args[i].ends_with(".yaml") || args[i].ends_with(".yml");
    const bool is_value = args[i].starts_with('-') || (i > 0 && is_config_file(args[i - 1]));
    if (is_yaml && !is_value) return true;
  }
  return false;
}

}  // namespace

void add_measuring_options(po::options_description& options) {
  options.add_options()("val", "images as in evaluation; default: random resized crop and flip")(
      "runs", po::value<int>()->default_value(5), kRunsHelp)(
      "seconds", po::value<double>()->default_value(2), kSecondsHelp)(
      "passes", po::value<std::int64_t>()->default_value(0),
      "passes per measurement; instead of --seconds; 0: as many as --seconds requires, or one with "
      "--cold")("pass-samples", po::value<std::int64_t>()->default_value(0),
                "samples per pass; to shorten passes over large files; 0: all")(
      "cold",
      "read from disk; the file is dropped from the page cache before each measurement, which is "
      "one pass unless --passes is given; there is no warm-up pass")(
      "svg", po::value<std::string>()->value_name("FILE"), kSvgHelp)("json", kJsonHelp);
}

LoaderRunOptions read_measuring(const Arguments& arguments) {
  check_range("runs", arguments.get<int>("runs"), 1, 10'000);
  LoaderRunOptions run_options = {.val = arguments.has("val"),
                                  .passes = arguments.get<std::int64_t>("passes"),
                                  .seconds = arguments.get<double>("seconds"),
                                  .samples = arguments.get<std::int64_t>("pass-samples"),
                                  .cold = arguments.has("cold")};
  check_range("passes", run_options.passes, 0, 1'000'000);
  check_range("pass-samples", run_options.samples, 0, INT_MAX);
  if (!(run_options.seconds > 0 && run_options.seconds <= 3600))
    throw ConfigError(fmt::format("--seconds: expected a number above 0 and at most 3600, got {}",
                                  run_options.seconds));
  if (run_options.cold && arguments.given("seconds") && !arguments.given("passes"))
    throw ConfigError(
        "--seconds: expected --passes instead, because with --cold only the first pass reads from "
        "disk");
  if (run_options.cold && run_options.passes == 0) run_options.passes = 1;
  return run_options;
}

int measure_and_report(const Arguments& arguments, const std::string& file, std::uint64_t samples,
                       std::vector<LoaderPoint> points) {
  const int rounds = arguments.get<int>("runs");
  measure_points(rounds, points);
  if (arguments.has("svg")) write_file(arguments.text("svg"), chart(file, points));
  if (arguments.has("json")) {
    print_json(sweep_json(file, samples, rounds, points));
  } else {
    print_points(file, samples, points);
  }
  return 0;
}

int run_bench_loader(const std::vector<std::string>& args) {
  if (names_recipe(args)) exec_precast_train("bench recipe_loader", args);
  Arguments arguments = loader_arguments();
  if (!arguments.parse(args)) return 0;
  check_table_options(arguments);
  const LoaderRunOptions run_options = read_run_options(arguments);
  return arguments.has("table")
             ? run_loader_table(arguments, run_options, arguments.get<int>("runs"))
             : run_sweep(arguments, run_options);
}

}  // namespace precast::tools
