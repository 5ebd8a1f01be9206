#include "tools/bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <climits>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/order/pages.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/arguments.h"
#include "tools/bench/stopwatch.h"
#include "tools/exec_sibling.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// One pass over the data.
struct Measurement {
  std::int64_t images = 0;
  double seconds = 0;
  double cpu = 0;

  [[nodiscard]] double per_second() const { return static_cast<double>(images) / seconds; }
  [[nodiscard]] double per_cpu_second() const { return static_cast<double>(images) / cpu; }
};

/// @param repeats passes over the file that count as one, so that small files give times worth
/// measuring.
Measurement measure(data::Loader& loader, std::int64_t first_epoch, std::int64_t repeats,
                    int size_px) {
  Measurement result;
  const Stopwatch watch;
  for (std::int64_t epoch = first_epoch; epoch < first_epoch + repeats; ++epoch) {
    loader.begin_epoch({.epoch = epoch, .image_size_px = size_px});
    while (const auto batch = loader.next())
      result.images += static_cast<std::int64_t>(batch->sample_ids.size());
  }
  result.seconds = watch.seconds();
  result.cpu = watch.cpu_seconds();
  return result;
}

template <typename Figure>
double median(std::vector<Measurement> measurements, Figure figure) {
  std::ranges::sort(measurements, {}, figure);
  return figure(measurements[measurements.size() / 2]);
}

void report(const std::vector<Measurement>& measurements, const Arguments& arguments,
            const data::MemoryPlan& memory, const data::LoaderStatistics& statistics) {
  const double rate = median(measurements, [](const Measurement& m) { return m.per_second(); });
  const double cpu_rate =
      median(measurements, [](const Measurement& m) { return m.per_cpu_second(); });
  if (!arguments.has("json")) {
    fmt::print("{:>8}   {:>10}   {:>8}   {:>12}\n", "images", "seconds", "img/s", "img/CPU-s");
    for (const Measurement& m : measurements) {
      fmt::print("{:>8}   {:>10.3f}   {:>8.0f}   {:>12.0f}\n", m.images, m.seconds, m.per_second(),
                 m.per_cpu_second());
    }
    fmt::print("memory: {}\n", memory.text());
    fmt::print("median {:>25}   {:>8.0f}   {:>12.0f}\n", "", rate, cpu_rate);
    return;
  }
  auto runs = nlohmann::ordered_json::array();
  for (const Measurement& m : measurements) {
    runs.push_back({{"images", m.images},
                    {"seconds", m.seconds},
                    {"cpu_seconds", m.cpu},
                    {"images_per_second", m.per_second()},
                    {"images_per_cpu_second", m.per_cpu_second()}});
  }
  const nlohmann::ordered_json all = {{"images_per_second", rate},
                                      {"images_per_cpu_second", cpu_rate},
                                      {"image_size", arguments.get<int>("image_size")},
                                      {"batch_size", arguments.get<std::int64_t>("batch_size")},
                                      {"workers", arguments.get<int>("workers")},
                                      {"normalize", arguments.has("normalize")},
                                      {"memory", memory.json()},
                                      {"disk_bytes", statistics.disk_bytes},
                                      {"disk_waits", statistics.disk_waits},
                                      {"cache_peak_bytes", statistics.cache_peak_bytes},
                                      {"runs", runs}};
  fmt::print("{}\n", all.dump(2));
}

int run_bench_loader(const std::vector<std::string>& args) {
  Arguments arguments(
      "bench loader FILE.beton [options]",
      "Loads the dataset again and again; the first pass warms up and is not counted.");
  arguments.positional("FILE.beton", "the dataset");
  arguments.options().add_options()("val", "centre crop; default: random resized crop and flip")(
      "image_size", po::value<int>()->default_value(176), "side of the images, px")(
      "batch_size", po::value<std::int64_t>()->default_value(256), "samples a batch")(
      "workers", po::value<int>()->default_value(usable_cores()), "loader threads")(
      "runs", po::value<int>()->default_value(5), "measurements; the median counts")(
      "passes", po::value<std::int64_t>()->default_value(1), "passes over the file a measurement")(
      "sequential", "file order; default: random")(
      "order", po::value<std::string>(), "any order; quasi_random opens 2 x batch_size pages")(
      "shuffle_window_mb", po::value<std::string>()->default_value("ffcv"),
      "quasi_random: MiB of pages open at once")(
      "cache_mb", po::value<std::int64_t>()->default_value(0),
      "read pages into so many MiB of this process; 0: map the file")(
      "direct_io", "with --cache_mb: past the page cache")(
      "normalize", "float32, normalised; default: uint8")("json", "print results as JSON");
  if (!arguments.parse(args)) return 0;
  const auto size_px = arguments.get<int>("image_size");
  const auto runs = arguments.get<int>("runs");
  const auto passes = arguments.get<std::int64_t>("passes");
  check_range("image_size", size_px, 1, 8192);
  check_range("runs", runs, 1, INT_MAX);
  check_range("passes", passes, 1, INT_MAX);
  check_range("batch_size", arguments.get<std::int64_t>("batch_size"), 1, INT_MAX);
  check_range("workers", arguments.get<int>("workers"), 1, INT_MAX);
  const auto cache_mb = arguments.get<std::int64_t>("cache_mb");
  check_range("cache_mb", cache_mb, 0, INT_MAX);
  const auto access = cache_mb == 0                ? data::BlobAccess::mapped
                      : arguments.has("direct_io") ? data::BlobAccess::on_disk_direct
                                                   : data::BlobAccess::on_disk;
  const data::BetonReader reader(arguments.text("FILE.beton"), access);
  data::LoaderOptions options;
  options.cache_bytes = static_cast<std::uint64_t>(cache_mb) << 20;
  options.batch_size = arguments.get<std::int64_t>("batch_size");
  options.workers = arguments.get<int>("workers");
  const std::string order = arguments.has("order")        ? arguments.text("order")
                            : arguments.has("sequential") ? "sequential"
                                                          : "random";
  options.order = data::make_order(
      reader,
      {.name = order,
       .window_pages = data::window_pages(arguments.text("shuffle_window_mb"), options.batch_size,
                                          reader.header().page_bytes, memory_limit_bytes())});
  options.normalize = arguments.has("normalize");
  const data::Pipeline pipeline =
      arguments.has("val") ? data::standard_val_pipeline() : data::standard_train_pipeline();
  data::Loader loader(reader, pipeline, options);
  static_cast<void>(measure(loader, 0, 1, size_px));
  std::vector<Measurement> measurements;
  for (int run = 0; run < runs; ++run)
    measurements.push_back(measure(loader, 1 + run * passes, passes, size_px));
  report(measurements, arguments, data::plan_memory(reader, pipeline, options, size_px), loader.statistics());
  return 0;
}

}  // namespace

int run_bench(const std::vector<std::string>& args) {
  const std::string what = args.empty() ? "" : args[0];
  if (what == "loader") return run_bench_loader({args.begin() + 1, args.end()});
  if (what == "step" || what == "stages" || what == "allreduce") exec_precast_train("bench", args);
  if (what == "--help" || what == "-h") {
    fmt::print(
        "usage: precast bench WHAT [options]   (precast bench WHAT --help)\n\n"
        "  loader      how fast batches come\n"
        "  step        how fast a model trains, on made-up or real data, on one rank or many\n"
        "  stages      what slows training down: reading, processing, or the steps themselves\n"
        "  allreduce   how fast gradients are summed over the ranks\n");
    return 0;
  }
  throw ConfigError(fmt::format("bench: expected loader, step, stages or allreduce, got {}",
                                what.empty() ? "nothing" : "'" + what + "'"));
}

}  // namespace precast::tools
