#include "tools/bench/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/progress.h"
#include "tools/bench/decode_run.h"
#include "tools/cli/arguments.h"
#include "tools/cli/cpu.h"
#include "tools/cli/json_output.h"
#include "tools/cli/median.h"
#include "tools/cli/shared_options.h"
#include "tools/cli/text_table.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// Returns the figures of one measurement.
ordered_json figures_of(const DecodeWork& work) {
  const auto images = static_cast<double>(work.images);
  const double both = work.decode_seconds + work.resize_seconds;
  return {{"images", work.images},
          {"images_per_second", images / work.seconds},
          {"images_per_cpu_second", images / both},
          {"decoded_images_per_cpu_second", images / work.decode_seconds},
          {"jpeg_megabytes_per_cpu_second", work.jpeg_bytes / 1e6 / work.decode_seconds},
          {"megapixels_per_cpu_second", work.pixels / 1e6 / work.decode_seconds},
          {"decode_us", work.decode_seconds * 1e6 / images},
          {"resize_us", work.resize_seconds * 1e6 / images}};
}

/// The median of each figure, and the minimum and maximum of decode_us.
ordered_json summarise(const DecodeMode& mode, const std::vector<ordered_json>& runs) {
  ordered_json row = {{"decoder", mode.decoder->name}, {"region", mode.crop ? "crop" : "full"}};
  const auto values = [&](const std::string& key) {
    std::vector<double> all;
    for (const ordered_json& run : runs) all.push_back(run.at(key).get<double>());
    return all;
  };
  for (const auto& [key, value] : runs[0].items()) {
    if (key != "images") row[key] = median(values(key));
  }
  row["decode_us_least"] = std::ranges::min(values("decode_us"));
  row["decode_us_most"] = std::ranges::max(values("decode_us"));
  row["runs"] = runs;
  return row;
}

void print_rows(const std::vector<ordered_json>& rows) {
  std::vector<std::vector<std::string>> table = {{"decoder", "region", "decode us", "min - max",
                                                  "img/CPU-s", "MB/CPU-s", "Mpx/CPU-s", "resize us",
                                                  "both img/CPU-s", "img/s", "vs first"}};
  const auto value = [](const ordered_json& row, const char* key) {
    return row.at(key).get<double>();
  };
  for (const ordered_json& row : rows) {
    const auto rounded = [&](const char* key) { return fmt::format("{:.0f}", value(row, key)); };
    table.push_back(
        {row.at("decoder"), row.at("region"), fmt::format("{:.1f}", value(row, "decode_us")),
         fmt::format("{:.1f} - {:.1f}", value(row, "decode_us_least"),
                     value(row, "decode_us_most")),
         rounded("decoded_images_per_cpu_second"), rounded("jpeg_megabytes_per_cpu_second"),
         rounded("megapixels_per_cpu_second"), fmt::format("{:.1f}", value(row, "resize_us")),
         rounded("images_per_cpu_second"), rounded("images_per_second"),
         fmt::format("{:.2f}", value(rows[0], "decode_us") / value(row, "decode_us"))});
  }
  print_text_table(table);
  if (rows.size() > 1)
    fmt::print("\nvs first: decode us of the first row divided by decode us of this row\n");
}

void add_options(po::options_description& options) {
  options.add_options()(
      "decoder", po::value<std::string>()->default_value("libjpeg,own,indexed"),
      "decoders to measure; own: precast's decoder; indexed: own, with a JPEG index; "
      "indexed_no_lanes: indexed, but the parts of a scan are decoded one after the other")(
      "region", po::value<std::string>()->default_value("full,crop"),
      "part of an image to decode; full: all of it; crop: a random crop, as in training")(
      "every", po::value<int>()->default_value(8), kEveryHelp)(
      "dct", po::value<std::string>()->default_value("ifast"),
      "inverse DCT; ifast: as in FFCV; islow: more accurate")(
      "image-size", po::value<int>()->default_value(176), kImageSizeHelp)(
      "workers", number(1), kWorkersHelp)("runs", po::value<int>()->default_value(5), kRunsHelp)(
      "seconds", po::value<double>()->default_value(1), kSecondsHelp)("json", kJsonHelp);
}

std::vector<DecodeMode> read_modes(const Arguments& arguments) {
  std::vector<std::string_view> decoders;
  for (const NamedDecoder& decoder : kDecoders) decoders.push_back(decoder.name);
  std::vector<DecodeMode> modes;
  for (const std::string& region : split_list("region", arguments.text("region"))) {
    const bool crop = find_name("region", {"full", "crop"}, region) == 1;
    for (const std::string& decoder : split_list("decoder", arguments.text("decoder")))
      modes.push_back({&kDecoders[find_name("decoder", decoders, decoder)], crop});
  }
  return modes;
}

DecodeTask read_task(const Arguments& arguments, const std::vector<StoredJpeg>& jpegs) {
  const auto number = [&](const char* option, int most) {
    const auto value = arguments.get<int>(option);
    check_range(option, value, 1, most);
    return value;
  };
  return {.jpegs = jpegs,
          .threads = std::min(worker_count(arguments), static_cast<int>(jpegs.size())),
          .image_size_px = number("image-size", 8192),
          .accurate_dct = find_name("dct", {"ifast", "islow"}, arguments.text("dct")) == 1,
          .interval = static_cast<std::size_t>(number("every", 1'000'000))};
}

/// One row of figures per mode; the modes are measured alternately.
std::vector<ordered_json> measure_all(const DecodeTask& task, const std::vector<DecodeMode>& modes,
                                      int rounds, double seconds) {
  // Warms up, and faults in mapped pages.
  for (const DecodeMode& mode : modes) static_cast<void>(decode_jpegs(task, mode, 0, 0));
  std::vector<std::vector<ordered_json>> runs(modes.size());
  Progress progress;
  for (int round = 1; round <= rounds; ++round) {
    for (std::size_t i = 0; i < modes.size(); ++i) {
      if (progress.due())
        progress.show(fmt::format("round {} of {}: {}", round, rounds, modes[i].decoder->name));
      runs[i].push_back(
          figures_of(decode_jpegs(task, modes[i], static_cast<std::uint32_t>(round), seconds)));
    }
  }
  progress.clear();
  std::vector<ordered_json> rows;
  for (std::size_t i = 0; i < modes.size(); ++i) rows.push_back(summarise(modes[i], runs[i]));
  return rows;
}

Arguments decode_arguments() {
  Arguments arguments("bench decode FILE... [options]",
                      "Decodes stored JPEGs in memory, and resizes the results. Times are CPU "
                      "times of the threads; only img/s uses wall-clock time. Each combination of "
                      "--decoder and --region is a row; the rows are measured alternately.");
  arguments.positional_list("FILE", "a .beton file with images stored as JPEG, or JPEG files");
  add_options(arguments.options());
  arguments.example("precast bench decode train.beton --region crop --workers 0");
  arguments.exit_codes({3});
  return arguments;
}

bool any_indexed(const std::vector<DecodeMode>& modes) {
  return std::ranges::any_of(modes, [](const DecodeMode& mode) { return mode.decoder->indexed; });
}

/// @param index_bytes size of the JPEG index; 0 if no indexed decoder is measured.
ordered_json decode_json(const StoredJpegs& jpegs, const DecodeTask& task, std::size_t index_bytes,
                         const std::vector<ordered_json>& rows) {
  ordered_json all = {{"jpegs", jpegs.all().size()},
                      {"raw", jpegs.raw_count()},
                      {"image_size", task.image_size_px},
                      {"threads", task.threads},
                      {"dct", task.accurate_dct ? "islow" : "ifast"},
                      {"interval", task.interval},
                      {"index_bytes", index_bytes}};
  all.update(cpu_json(cpu_facts()));
  all["rows"] = rows;
  return all;
}

void print_head(const StoredJpegs& jpegs, const DecodeTask& task, std::size_t index_bytes,
                int rounds) {
  const auto count = [](auto number, std::string_view one) {
    return format_count(static_cast<std::uint64_t>(number), one);
  };
  fmt::print("{}{}; resized to {} px; {}; medians of {}\n{}\n", count(jpegs.all().size(), "JPEG"),
             jpegs.raw_count() > 0
                 ? fmt::format(" ({} left out)", count(jpegs.raw_count(), "raw image"))
                 : "",
             task.image_size_px, count(task.threads, "thread"), count(rounds, "round"),
             cpu_text(cpu_facts()));
  if (index_bytes > 0)
    fmt::print("JPEG index: a checkpoint every {} MCUs, {:.0f} bytes per image\n", task.interval,
               static_cast<double>(index_bytes) / static_cast<double>(jpegs.all().size()));
  fmt::print("\n");
}

}  // namespace

int run_bench_decode(const std::vector<std::string>& args) {
  Arguments arguments = decode_arguments();
  if (!arguments.parse(args)) return 0;
  const auto rounds = arguments.get<int>("runs");
  const auto seconds = arguments.get<double>("seconds");
  check_range("runs", rounds, 1, 10'000);
  if (!(seconds >= 0 && seconds <= 3600))
    throw ConfigError(fmt::format("--seconds: expected 0 to 3600, got {}", seconds));
  const std::vector<DecodeMode> modes = read_modes(arguments);
  const StoredJpegs jpegs(arguments.get<std::vector<std::string>>("FILE"));
  DecodeTask task = read_task(arguments, jpegs.all());
  const std::size_t index_bytes = any_indexed(modes) ? task.find_checkpoints() : 0;
  const std::vector<ordered_json> rows = measure_all(task, modes, rounds, seconds);
  if (arguments.has("json")) {
    print_json(decode_json(jpegs, task, index_bytes, rows));
    return 0;
  }
  print_head(jpegs, task, index_bytes, rounds);
  print_rows(rows);
  return 0;
}

}  // namespace precast::tools
