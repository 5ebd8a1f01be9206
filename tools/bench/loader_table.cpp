#include "tools/bench/loader_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <set>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/format.h"
#include "tools/cli/cpu.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/text_table.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;
using nlohmann::ordered_json;

// tools/peers/loader_rows.py has the same list of files; a test compares the two lists.
constexpr TableFile kJpg = {"jpg", "jpg", 512, 90, 4};
constexpr TableFile kRaw = {"raw", "raw", 256, 0, 2};
constexpr TableFile kMix = {"mix", "proportion", 512, 90, 2};
constexpr TableFile kRaw512 = {"raw512", "raw", 512, 0, 1};

// kSetByTable: options that conflict with --table, most of them because the table sets their
// values. kTableOnlyOptions: options that need --table. All other options work with and without it.
constexpr const char* kSetByTable[] = {"processes",    "workers",      "image-size", "order",
                                       "in-memory",    "cache-mb",     "jpeg-index", "cold",
                                       "passes",       "val",          "pipeline",   "config-file",
                                       "pass-samples", "field-layout", "svg"};
constexpr const char* kTableOnlyOptions[] = {"scratch", "count", "rows", "dry-run"};

/// "jpg 512 px q90"
std::string file_text(const TableFile& file) {
  return fmt::format("{} {} px{}", file.mode == "proportion" ? "mix" : file.mode,
                     file.max_resolution_px,
                     file.quality > 0 ? fmt::format(" q{}", file.quality) : "");
}

ordered_json plan_json(const LoaderRow& row) {
  return {{"name", row.name()},
          {"from", row.from_disk ? "disk" : "memory"},
          {"file", row.file->name},
          {"mode", row.file->mode},
          {"max_resolution", row.file->max_resolution_px},
          {"quality", row.file->quality > 0 ? ordered_json(row.file->quality) : ordered_json()},
          {"copies", row.copies()},
          {"image_size", row.image_size_px},
          {"workers", row.workers},
          {"loader", row.loader}};
}

ordered_json plan_json(const std::vector<LoaderRow>& rows) {
  ordered_json all = ordered_json::array();
  for (const LoaderRow& row : rows) all.push_back(plan_json(row));
  return all;
}

/// The settings that all rows of the table share, and the machine.
ordered_json head_json(const Arguments& arguments, const TableFiles& files, int rounds,
                       const LoaderSetting& setting) {
  ordered_json head = {{"table", arguments.text("table")},
                       {"source", arguments.text("FILE.beton")},
                       {"images", files.images()},
                       {"scratch", files.folder().string()},
                       {"rounds", rounds},
                       {"batch_size", setting.batch_size},
                       {"format", setting.format},
                       {"layout", setting.layout}};
  head.update(cpu_json(cpu_facts()));
  return head;
}

/// Bytes of the file per image.
double image_bytes(const LoaderRow& row, const TableFiles& files, const fs::path& file) {
  const auto images = static_cast<double>(files.images()) * row.copies();
  return static_cast<double>(fs::file_size(file)) / images;
}

ordered_json rows_json(const std::vector<LoaderRow>& rows, const TableFiles& files,
                       const std::vector<LoaderPoint>& points) {
  ordered_json all = ordered_json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ordered_json row = plan_json(rows[i]);
    row["path"] = points[i].file.string();
    row["megabytes_per_second"] = points[i].median_of("images_per_second") *
                                  image_bytes(rows[i], files, points[i].file) / 1e6;
    row["more_threads_than_cores"] = points[i].has_more_threads_than_cores();
    row.update(figures_json(points[i]));
    all.push_back(std::move(row));
  }
  return all;
}

void print_head(const Arguments& arguments, const TableFiles& files, const LoaderSetting& setting) {
  fmt::print("table {}: {} of {}; batch size {}, format {}, layout {}; medians of {}\n{}\n\n",
             arguments.text("table"), format_count(files.images(), "image"),
             arguments.text("FILE.beton"), setting.batch_size, setting.format, setting.layout,
             format_count(static_cast<std::uint64_t>(arguments.get<int>("runs")), "round"),
             cpu_text(cpu_facts()));
}

void print_plan(const std::vector<LoaderRow>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"from", "file", "copies", "px", "workers", "loader"}};
  for (const LoaderRow& row : rows)
    table.push_back({row.from_disk ? "disk" : "memory", file_text(*row.file),
                     std::to_string(row.copies()), std::to_string(row.image_size_px),
                     std::to_string(row.workers), std::string(row.loader)});
  print_text_table(table);
}

void print_rows(const std::vector<LoaderRow>& rows, const TableFiles& files,
                const std::vector<LoaderPoint>& points) {
  const auto rate = "images_per_second", cpu_rate = "images_per_cpu_second";
  std::vector<std::vector<std::string>> table = {{"from", "file", "px", "workers", "loader",
                                                  "img/s", "min - max", "img/CPU-s", "min - max",
                                                  "MB/s", "cores busy", "own MB", "cached"}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LoaderPoint& point = points[i];
    const double bytes = image_bytes(rows[i], files, point.file);
    table.push_back(
        {rows[i].from_disk ? "disk" : "memory", file_text(*rows[i].file),
         std::to_string(rows[i].image_size_px), std::to_string(rows[i].workers),
         std::string(rows[i].loader), fmt::format("{:.0f}", point.median_of(rate)),
         point.min_max_text(rate), fmt::format("{:.0f}", point.median_of(cpu_rate)),
         point.min_max_text(cpu_rate), fmt::format("{:.0f}", point.median_of(rate) * bytes / 1e6),
         cores_busy_text(point), fmt::format("{:.0f}", point.median_of("anonymous_bytes") / 1e6),
         point.run_options.cold ? fmt::format("{:.0f} %", 100 * point.median_of("cached_before"))
                                : ""});
  }
  print_text_table(table);
  print_threads_note(points);
  print_replaced(points);
}

/// The rows to measure: all rows of the table or, with `--rows TEXT`, those whose name contains
/// TEXT.
/// @throws ConfigError if no row matches.
std::vector<LoaderRow> chosen_rows(const Arguments& arguments) {
  std::vector<LoaderRow> rows = seeds_rows(cpu_facts().cores);
  const std::string text = arguments.text("rows");
  std::erase_if(rows,
                [&](const LoaderRow& row) { return row.name().find(text) == std::string::npos; });
  if (rows.empty())
    throw ConfigError(fmt::format(
        "--rows: expected a part of a row's name, got '{}'. --dry-run --json lists the names",
        text));
  return rows;
}

}  // namespace

std::string LoaderRow::name() const {
  return fmt::format("{} {} {} px, {}, {}", from_disk ? "disk" : "memory", file->name,
                     image_size_px, format_count(static_cast<std::uint64_t>(workers), "worker"),
                     loader);
}

LoaderPoint LoaderRow::point(const LoaderSetting& setting, LoaderRunOptions run_options) const {
  LoaderSetting own = setting;
  own.workers = workers;
  own.image_size_px = image_size_px;
  own.jpeg_index = loader == "precast_indexed" ? "on" : "off";
  if (loader == "precast_quasi") {
    own.order = "quasi_random";
    own.in_memory = 0;
  }
  run_options.cold = from_disk;
  run_options.passes = from_disk ? 1 : 0;
  return {.name = name(), .file = {}, .setting = own, .run_options = std::move(run_options)};
}

std::vector<LoaderRow> seeds_rows(int cores) {
  std::vector<LoaderRow> rows;
  for (const int workers : std::set{1, 2, cores, 2 * cores}) {
    rows.push_back({&kJpg, false, "precast", workers});
    rows.push_back({&kJpg, false, "precast_indexed", workers});
    rows.push_back({&kRaw, false, "precast", workers});
    rows.push_back({&kMix, false, "precast", workers});
    rows.push_back({&kMix, false, "precast_indexed", workers});
  }
  for (const TableFile* file : {&kRaw512, &kJpg, &kRaw, &kMix})
    for (const char* loader : {"precast", "precast_quasi"})
      rows.push_back({file, true, loader, cores});
  return rows;
}

void add_table_options(po::options_description& options) {
  options.add_options()("table", po::value<std::string>()->value_name("NAME"),
                        "measure the rows of a table; seeds, the only NAME, is FFCV's data-loading "
                        "table: JPEG, raw and mixed files, read from memory and from disk")(
      "scratch", po::value<std::string>()->default_value("bench_files")->value_name("FOLDER"),
      "folder for the .beton files that a table needs; they are kept for later runs")(
      "count", number(400), "number of samples drawn at random; from the source of --table")(
      "rows", po::value<std::string>()->default_value("")->value_name("TEXT"),
      "only these rows; with --table: rows whose name contains TEXT; default: all")(
      "dry-run", "check everything and show the plan; nothing is written or measured");
}

void check_table_options(const Arguments& arguments) {
  if (!arguments.has("table")) {
    for (const char* option : kTableOnlyOptions)
      if (arguments.given(option))
        throw ConfigError(fmt::format(
            "--{}: expected --table as well, because this option applies only to a table", option));
    return;
  }
  (void)find_name("table", {"seeds"}, arguments.text("table"));
  for (const char* option : kSetByTable)
    if (arguments.given(option))
      throw ConfigError(
          fmt::format("--table: expected no --{}, because it does not apply to a table", option));
}

int run_loader_table(const Arguments& arguments, const LoaderRunOptions& run_options, int rounds) {
  const std::vector<LoaderSetting> settings = read_sweep(arguments);
  if (settings.size() != 1)
    throw ConfigError("--table: expected one value for each option, got a list");
  const std::vector<LoaderRow> rows = chosen_rows(arguments);
  const TableFiles files(arguments.text("FILE.beton"), arguments.text("scratch"),
                         static_cast<std::uint64_t>(integer(arguments, "count", 1, INT64_MAX)));
  std::vector<LoaderPoint> points;
  const bool measures = !arguments.has("dry-run");
  for (const LoaderRow& row : rows) {
    points.push_back(row.point(settings[0], run_options));
    points.back().file = files.path(*row.file, row.copies());
    if (measures) files.write(*row.file, row.copies());
  }
  if (measures) measure_points(rounds, points);
  if (arguments.has("json")) {
    ordered_json all = head_json(arguments, files, rounds, settings[0]);
    all["rows"] = measures ? rows_json(rows, files, points) : plan_json(rows);
    if (measures) all["replaced"] = all_replaced(points);
    print_json(all);
    return 0;
  }
  print_head(arguments, files, settings[0]);
  if (measures) {
    print_rows(rows, files, points);
  } else {
    print_plan(rows);
  }
  return 0;
}

}  // namespace precast::tools
