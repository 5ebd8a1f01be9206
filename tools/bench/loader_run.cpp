#include "tools/bench/loader_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/decode/jpeg_index.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "data/order/order.h"
#include "data/order/pages.h"
#include "framework/core/system.h"
#include "tools/bench/process_memory.h"
#include "tools/bench/read_pass.h"
#include "tools/bench/side_by_side.h"
#include "tools/bench/stopwatch.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// A loader and the part of each pass that is measured.
class MeasuredLoader {
 public:
  MeasuredLoader(const data::BetonReader& reader, const LoaderSetting& setting,
                 const LoaderEffort& effort, std::uint64_t seed)
      : size_px_(setting.image_size_px),
        pipeline_(setting.with_pixels(effort.val ? data::standard_val_pipeline()
                                                 : data::standard_train_pipeline())),
        options_(loader_options(reader, setting, effort, seed)),
        planned_bytes_(data::plan_memory(reader, pipeline_, options_, size_px_).own()),
        loader_(reader, pipeline_, options_) {
    const std::int64_t wanted = (effort.samples + setting.batch_size - 1) / setting.batch_size;
    // The last batches of a pass, so that each pass ends with no sample decoded in vain.
    if (effort.samples > 0) first_batch_ = std::max<std::int64_t>(0, loader_.batches() - wanted);
  }

  /// @return the images that came.
  std::int64_t pass(std::int64_t epoch) {
    std::int64_t images = 0;
    loader_.begin_epoch({.epoch = epoch, .first_batch = first_batch_, .image_size_px = size_px_});
    while (const auto batch = loader_.next())
      images += static_cast<std::int64_t>(batch->sample_ids.size());
    return images;
  }

  /// Sums since the loader was made.
  [[nodiscard]] ordered_json counters() const {
    const data::LoaderStatistics statistics = loader_.statistics();
    double busy = 0, idle = 0;
    for (const data::WorkerStatistics& worker : statistics.workers) {
      busy += worker.busy;
      idle += worker.waiting;
    }
    return {{"seconds_waited", loader_.seconds_waited()},
            {"busy_seconds", busy},
            {"idle_seconds", idle},
            {"disk_seconds", statistics.seconds_for_disk},
            {"disk_bytes", static_cast<double>(statistics.disk_bytes)}};
  }
  [[nodiscard]] std::uint64_t planned_bytes() const { return planned_bytes_; }

 private:
  static data::LoaderOptions loader_options(const data::BetonReader& reader,
                                            const LoaderSetting& setting,
                                            const LoaderEffort& effort, std::uint64_t seed) {
    data::LoaderOptions options;
    options.workers = setting.workers;
    options.batch_size = setting.batch_size;
    options.seed = seed;
    options.cache_bytes = effort.cache_bytes;
    options.order = data::make_order(
        reader,
        {.name = setting.order,
         .window_pages = data::window_pages(effort.shuffle_window_mb, setting.batch_size,
                                            reader.header().page_bytes, memory_limit_bytes())});
    if (setting.jpeg_index)
      options.jpeg_index = std::make_shared<data::JpegIndex>(
          reader.size(), data::JpegIndex::kDefaultInterval, memory_limit_bytes() / 16);
    return options;
  }

  std::int64_t size_px_;
  std::int64_t first_batch_ = 0;
  data::ImagePipeline pipeline_;
  data::LoaderOptions options_;
  std::uint64_t planned_bytes_;
  data::Loader loader_;
};

data::BlobAccess access_of(const LoaderSetting& setting, const LoaderEffort& effort) {
  if (setting.in_memory) return data::BlobAccess::mapped;
  return effort.direct_io ? data::BlobAccess::on_disk_direct : data::BlobAccess::on_disk;
}

/// What one process measures. @param seed another one a process: each its own order and crops.
ordered_json measure(const std::filesystem::path& file, const LoaderSetting& setting,
                     const LoaderEffort& effort, std::int64_t epoch, std::uint64_t seed,
                     const std::function<void()>& start) {
  const data::BetonReader reader(file, access_of(setting, effort));
  MeasuredLoader loader(reader, setting, effort, seed);
  if (!effort.cold) loader.pass(0);
  const ordered_json before = loader.counters();
  start();
  const Stopwatch watch;
  std::int64_t images = 0;
  for (std::int64_t pass = 0;
       effort.passes > 0 ? pass < effort.passes : pass == 0 || watch.seconds() < effort.seconds;
       ++pass)
    images += loader.pass(epoch + pass);
  const double seconds = watch.seconds();
  const double cpu = watch.cpu_seconds();
  const ProcessMemory memory = process_memory();
  ordered_json figures = {{"images", images},
                          {"seconds", seconds},
                          {"cpu_seconds", cpu},
                          {"images_per_second", static_cast<double>(images) / seconds},
                          {"peak_resident_bytes", memory.peak_resident},
                          {"proportional_bytes", memory.proportional},
                          {"anonymous_bytes", memory.anonymous},
                          {"planned_bytes", loader.planned_bytes()}};
  const ordered_json after = loader.counters();
  for (const auto& [key, value] : after.items())
    figures[key] = value.get<double>() - before.at(key).get<double>();
  return figures;
}

}  // namespace

ordered_json run_loaders(const std::filesystem::path& file, const LoaderSetting& setting,
                         const LoaderEffort& effort, std::int64_t epoch,
                         const std::function<void()>& waiting) {
  if (effort.cold) drop_from_page_cache(file);
  const auto told = run_side_by_side(
      setting.processes,
      [&](int number, const std::function<void()>& start) {
        return measure(file, setting, effort, epoch, static_cast<std::uint64_t>(number), start)
            .dump();
      },
      waiting);
  ordered_json all = ordered_json::parse(told[0]);
  for (std::size_t i = 1; i < told.size(); ++i) {
    const ordered_json other = ordered_json::parse(told[i]);
    for (const auto& [key, value] : other.items()) {
      if (key == "seconds") {
        all[key] = std::max(all[key].get<double>(), value.get<double>());
      } else if (value.is_number_float()) {
        all[key] = all[key].get<double>() + value.get<double>();
      } else {
        all[key] = all[key].get<std::int64_t>() + value.get<std::int64_t>();
      }
    }
  }
  all["images_per_cpu_second"] = all["images"].get<double>() / all["cpu_seconds"].get<double>();
  return all;
}

}  // namespace precast::tools
