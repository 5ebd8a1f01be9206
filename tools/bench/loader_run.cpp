#include "tools/bench/loader_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/loader/memory_plan.h"
#include "tools/bench/page_cache.h"
#include "tools/bench/process_memory.h"
#include "tools/bench/side_by_side.h"
#include "tools/cli/stopwatch.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// A loader and the part of each pass that is measured.
class MeasuredLoader {
 public:
  MeasuredLoader(const data::BetonReader& reader, const LoaderSetting& setting,
                 const LoaderRunOptions& run_options, std::uint64_t seed)
      : size_px_(setting.image_size_px),
        options_(loader_options(reader, setting, run_options)),
        plan_(data::plan_memory(reader, pipeline(setting, run_options), options_, size_px_)),
        loader_(reader, pipeline(setting, run_options), with_seed(options_, seed)) {
    const std::int64_t batch_limit =
        (run_options.samples + setting.batch_size - 1) / setting.batch_size;
    // Loads the last batches of a pass, because stopping after the first batches would discard
    // samples that are already decoded.
    if (run_options.samples > 0)
      first_batch_ = std::max<std::int64_t>(0, loader_.batches() - batch_limit);
  }

  /// @return the number of images.
  std::int64_t pass(std::int64_t epoch) {
    std::int64_t images = 0;
    loader_.begin_epoch({.epoch = epoch, .first_batch = first_batch_, .image_size_px = size_px_});
    while (const auto batch = loader_.next())
      images += static_cast<std::int64_t>(batch->sample_ids.size());
    return images;
  }

  [[nodiscard]] double seconds_waited() const { return loader_.seconds_waited(); }
  [[nodiscard]] SourceTimes times() const { return loader_.times(); }
  [[nodiscard]] std::uint64_t planned_bytes() const { return plan_.own(); }
  [[nodiscard]] std::uint64_t disk_bytes() const { return loader_.statistics().disk_bytes; }
  [[nodiscard]] ordered_json replaced() const {
    ordered_json list = ordered_json::array();
    for (const ReplacedSample& entry : loader_.statistics().replaced)
      list.push_back({entry.sample, entry.by, entry.error});
    return list;
  }

 private:
  static data::LoaderOptions loader_options(const data::BetonReader& reader,
                                            const LoaderSetting& setting,
                                            const LoaderRunOptions& run_options) {
    if (run_options.recipe != nullptr) return run_options.recipe->options(reader);
    data::LoaderOptions options = setting.loader_options(reader);
    options.on_corrupt = run_options.on_corrupt;
    options.verify = run_options.verify;
    return options;
  }
  static data::Pipeline pipeline(const LoaderSetting& setting,
                                 const LoaderRunOptions& run_options) {
    if (run_options.recipe != nullptr) return run_options.recipe->pipeline;
    return run_options.pipeline != nullptr ? setting.formatted(*run_options.pipeline)
                                           : setting.pipeline(run_options.val);
  }
  static data::LoaderOptions with_seed(data::LoaderOptions options, std::uint64_t seed) {
    options.seed = seed;
    return options;
  }

  std::int64_t size_px_;
  std::int64_t first_batch_ = 0;
  data::LoaderOptions options_;
  data::MemoryPlan plan_;
  data::Loader loader_;
};

/// Runs the passes that `run_options` specifies. @return the number of images.
std::int64_t measured_passes(MeasuredLoader& loader, const LoaderRunOptions& run_options,
                             std::int64_t epoch, const Stopwatch& watch) {
  std::int64_t images = 0;
  for (std::int64_t pass = 0;
       run_options.passes > 0 ? pass < run_options.passes
                              : pass == 0 || watch.seconds() < run_options.seconds;
       ++pass)
    images += loader.pass(epoch + pass);
  return images;
}

ordered_json worker_seconds(const SourceTimes& after, const SourceTimes& before) {
  return {{"worker_seconds_processing", after.processing - before.processing},
          {"worker_seconds_reading", after.disk - before.disk},
          {"worker_seconds_blocked", after.blocked - before.blocked},
          {"worker_seconds_ahead", after.ahead - before.ahead}};
}

/// Measures the loader in one process. @param seed differs between processes, so that their orders
/// and crops differ.
ordered_json measure(const std::filesystem::path& file, const LoaderSetting& setting,
                     const LoaderRunOptions& run_options, std::int64_t epoch, std::uint64_t seed,
                     const std::function<void()>& start) {
  const auto reader =
      run_options.recipe != nullptr
          ? run_options.recipe->open()
          : std::make_unique<data::BetonReader>(file, setting.access(), run_options.layouts);
  MeasuredLoader loader(*reader, setting, run_options, seed);
  if (!run_options.cold) loader.pass(0);
  const double waited = loader.seconds_waited();
  const SourceTimes before = loader.times();
  start();
  const Stopwatch watch;
  const std::int64_t images = measured_passes(loader, run_options, epoch, watch);
  const double seconds = watch.seconds();
  const double cpu = watch.cpu_seconds();
  const ProcessMemory memory = process_memory();
  ordered_json figures = {{"images", images},
                          {"seconds", seconds},
                          {"cpu_seconds", cpu},
                          {"images_per_second", static_cast<double>(images) / seconds},
                          {"seconds_waited", loader.seconds_waited() - waited}};
  figures.update(worker_seconds(loader.times(), before));
  figures.update({{"disk_bytes", loader.disk_bytes()},
                  {"planned_bytes", loader.planned_bytes()},
                  {"peak_resident_bytes", memory.peak_resident},
                  {"proportional_bytes", memory.proportional},
                  {"anonymous_bytes", memory.anonymous},
                  {"replaced", loader.replaced()}});
  return figures;
}

/// Merges the result of another process that ran at the same time: adds values, takes the longest
/// time, and keeps each replaced sample once.
void add_process(ordered_json& all, const ordered_json& other) {
  for (const auto& [key, value] : other.items()) {
    if (key == "seconds") {
      all[key] = std::max(all[key].get<double>(), value.get<double>());
    } else if (value.is_array()) {
      for (const ordered_json& entry : value)
        if (std::ranges::find(all[key], entry) == all[key].end()) all[key].push_back(entry);
    } else if (value.is_number_float()) {
      all[key] = all[key].get<double>() + value.get<double>();
    } else {
      all[key] = all[key].get<std::int64_t>() + value.get<std::int64_t>();
    }
  }
}

}  // namespace

ordered_json run_loaders(const std::filesystem::path& file, const LoaderSetting& setting,
                         const LoaderRunOptions& run_options, std::int64_t epoch,
                         const std::function<void()>& on_wait) {
  if (run_options.cold) drop_from_page_cache(file);
  const double cached = run_options.cold ? cached_share(file) : 0;
  const auto results = run_side_by_side(
      setting.processes,
      [&](int number, const std::function<void()>& start) {
        return measure(file, setting, run_options, epoch, static_cast<std::uint64_t>(number), start)
            .dump();
      },
      on_wait);
  ordered_json all = ordered_json::parse(results[0]);
  for (std::size_t i = 1; i < results.size(); ++i)
    add_process(all, ordered_json::parse(results[i]));
  all["images_per_cpu_second"] = all["images"].get<double>() / all["cpu_seconds"].get<double>();
  if (run_options.cold) all["cached_before"] = cached;
  return all;
}

}  // namespace precast::tools
