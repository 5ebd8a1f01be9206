#include "tools/bench/decode.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/program_options/value_semantic.hpp>
#include <climits>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "data/decode/jpeg_decoder.h"
#include "data/resample/resize.h"
#include "data/transforms/image_pipeline.h"
#include "framework/core/error.h"
#include "framework/core/progress.h"
#include "framework/core/rng.h"
#include "framework/core/system.h"
#include "tools/arguments.h"
#include "tools/bench/stopwatch.h"
#include "tools/bench/stored_jpegs.h"
#include "tools/bench/text_table.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// Decodes that part of one of the stored JPEGs (`number` counts them); the pixels stay until the
/// next call.
using Decode = std::function<data::ImageView(const StoredJpeg& jpeg, std::size_t number,
                                             const data::Rect& region)>;

/// A decoder by its name, made anew for each thread. Another one is another line.
struct NamedDecoder {
  std::string_view name;
  Decode (*make)();
};
constexpr std::array kDecoders = {
    NamedDecoder{"libjpeg", []() -> Decode {
                   return [decoder = std::make_shared<data::JpegDecoder>()](
                              const StoredJpeg& jpeg, std::size_t, const data::Rect& region) {
                     return decoder->decode(jpeg.bytes, jpeg.height, jpeg.width, region);
                   };
                 }}};
constexpr std::array<std::string_view, 2> kRegions = {"full", "crop"};

/// A row of the table: which decoder decodes what.
struct Mode {
  const NamedDecoder* decoder = nullptr;
  std::string_view region;
};

/// What threads have done. Times are CPU seconds of the threads themselves.
struct Work {
  std::int64_t images = 0;
  double jpeg_bytes = 0;
  double pixels = 0;
  double decode_seconds = 0;
  double resize_seconds = 0;
  /// On the wall, of all threads together.
  double seconds = 0;

  void add(const Work& other) {
    images += other.images;
    jpeg_bytes += other.jpeg_bytes;
    pixels += other.pixels;
    decode_seconds += other.decode_seconds;
    resize_seconds += other.resize_seconds;
  }
};

struct Task {
  const std::vector<StoredJpeg>& jpegs;
  int threads = 1;
  int image_size_px = 0;
  double seconds = 0;
};

/// The part of an image that is decoded in a round: the same for every decoder.
data::Rect choose_region(std::string_view mode, const StoredJpeg& jpeg, std::uint32_t round,
                         std::uint64_t number) {
  if (mode == "full") return {0, 0, jpeg.height, jpeg.width};
  static const data::ImagePipeline pipeline = data::standard_train_pipeline();
  RandomStream random(0, round, number, RandomUse::crop);
  return pipeline.crop->choose(jpeg.height, jpeg.width, random);
}

/// One thread's share of the images, again and again until the time is over.
Work decode_share(const Task& task, const Mode& mode, std::uint32_t round, int thread) {
  const Decode decode = mode.decoder->make();
  data::AreaResizer resizer;
  const auto side = static_cast<std::size_t>(task.image_size_px);
  std::vector<std::uint8_t> out(side * side * 3);
  Work work;
  const Stopwatch watch;
  do {
    for (auto i = static_cast<std::size_t>(thread); i < task.jpegs.size();
         i += static_cast<std::size_t>(task.threads)) {
      const StoredJpeg& jpeg = task.jpegs[i];
      const data::Rect region = choose_region(mode.region, jpeg, round, i);
      const double begin = thread_cpu_seconds();
      const data::ImageView pixels = decode(jpeg, i, region);
      const double decoded = thread_cpu_seconds();
      resizer.resize(pixels, out.data(), task.image_size_px, task.image_size_px);
      const double resized = thread_cpu_seconds();
      work.add({1, static_cast<double>(jpeg.bytes.size()),
                static_cast<double>(region.height) * region.width, decoded - begin,
                resized - decoded});
    }
  } while (watch.seconds() < task.seconds);
  return work;
}

Work decode_all(const Task& task, const Mode& mode, std::uint32_t round) {
  std::vector<Work> shares(static_cast<std::size_t>(task.threads));
  std::vector<std::exception_ptr> failures(shares.size());
  const Stopwatch watch;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < task.threads; ++thread) {
      threads.emplace_back([&, thread] {
        const auto place = static_cast<std::size_t>(thread);
        try {
          shares[place] = decode_share(task, mode, round, thread);
        } catch (...) {
          failures[place] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  Work all;
  for (const Work& share : shares) all.add(share);
  all.seconds = watch.seconds();
  return all;
}

/// The figures of a measurement, per CPU-second and per image.
ordered_json figures_of(const Work& work) {
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

/// Each figure's median, with the least and the most time of a decode.
ordered_json summarise(const Mode& mode, const std::vector<ordered_json>& runs) {
  ordered_json row = {{"decoder", mode.decoder->name}, {"region", mode.region}};
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
  std::vector<std::vector<std::string>> table = {{"decoder", "region", "decode us", "least - most",
                                                  "img/CPU-s", "MB/CPU-s", "Mpx/CPU-s", "resize us",
                                                  "both img/CPU-s", "img/s", "to first"}};
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
}

/// @throws ConfigError naming the option for a name that is not among the known ones.
template <typename Known>
const auto& find_name(const Known& known, std::string_view option, std::string_view name,
                      auto name_of) {
  const auto found = std::ranges::find(known, name, name_of);
  if (found != known.end()) return *found;
  std::vector<std::string_view> names;
  for (const auto& each : known) names.push_back(name_of(each));
  throw ConfigError(
      fmt::format("--{}: expected some of {}, got '{}'", option, fmt::join(names, ", "), name));
}

std::vector<Mode> read_modes(const Arguments& arguments) {
  std::vector<Mode> modes;
  for (const std::string& region : split_list("region", arguments.text("region"))) {
    for (const std::string& decoder : split_list("decoder", arguments.text("decoder"))) {
      modes.push_back(
          {&find_name(kDecoders, "decoder", decoder,
                      [](const NamedDecoder& each) { return each.name; }),
           find_name(kRegions, "region", region, [](std::string_view each) { return each; })});
    }
  }
  return modes;
}

void add_options(po::options_description& options) {
  options.add_options()("decoder", po::value<std::string>()->default_value("libjpeg"), "libjpeg")(
      "region", po::value<std::string>()->default_value("full,crop"),
      "full: the whole image; crop: only a random crop, as training does")(
      "image_size", po::value<int>()->default_value(176), "what is decoded is resized to this, px")(
      "threads", po::value<int>()->default_value(1), "that decode at once")(
      "runs", po::value<int>()->default_value(5), "rounds over all rows; medians count")(
      "seconds", po::value<double>()->default_value(1), "a measurement takes whole passes, until")(
      "json", "print every measurement as JSON");
}

}  // namespace

int run_bench_decode(const std::vector<std::string>& args) {
  Arguments arguments("bench decode FILE.beton|IMAGE... [options]",
                      "Decodes stored JPEGs that lie in memory, and resizes what came out. Times "
                      "are those of the\nthreads' CPU clocks. Lists (--region full,crop) make a "
                      "row each; rows take turns in each round.");
  arguments.positional_list("FILE", "a .beton file with images stored as JPEG, or JPEG files");
  add_options(arguments.options());
  if (!arguments.parse(args)) return 0;
  const auto rounds = arguments.get<int>("runs");
  const auto threads = arguments.get<int>("threads");
  check_range("runs", rounds, 1, 10'000);
  check_range("threads", threads, 1, 4096);
  check_range("image_size", arguments.get<int>("image_size"), 1, 8192);
  if (const double seconds = arguments.get<double>("seconds"); !(seconds >= 0 && seconds <= 3600))
    throw ConfigError(fmt::format("--seconds: expected 0 to 3600, got {}", seconds));
  const std::vector<Mode> modes = read_modes(arguments);
  const StoredJpegs jpegs(arguments.get<std::vector<std::string>>("FILE"));
  Task task{jpegs.all(), std::min(threads, static_cast<int>(jpegs.all().size())),
            arguments.get<int>("image_size"), 0};
  // Warms up; faults in what is mapped.
  for (const Mode& mode : modes) static_cast<void>(decode_all(task, mode, 0));
  task.seconds = arguments.get<double>("seconds");

  std::vector<std::vector<ordered_json>> runs(modes.size());
  Progress progress;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < modes.size(); ++i) {
      if (progress.due())
        progress.show(fmt::format("round {} of {}: {}, {}", round + 1, rounds,
                                  modes[i].decoder->name, modes[i].region));
      runs[i].push_back(
          figures_of(decode_all(task, modes[i], static_cast<std::uint32_t>(round + 1))));
    }
  }
  progress.clear();
  std::vector<ordered_json> rows;
  for (std::size_t i = 0; i < modes.size(); ++i) rows.push_back(summarise(modes[i], runs[i]));
  if (arguments.has("json")) {
    const ordered_json all = {{"jpegs", jpegs.all().size()},      {"raw", jpegs.raw()},
                              {"image_size", task.image_size_px}, {"threads", task.threads},
                              {"processor", processor_name()},    {"rows", rows}};
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  fmt::print("{} JPEGs{}; resized to {} px; {} thread(s); medians of {} rounds; {}\n\n",
             jpegs.all().size(),
             jpegs.raw() > 0 ? fmt::format(" ({} raw images left out)", jpegs.raw()) : "",
             task.image_size_px, task.threads, rounds, processor_name());
  print_rows(rows);
  return 0;
}

}  // namespace precast::tools
