#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/c/handles.h"
#include "data/jobs/index_dataset.h"
#include "data/loader/outputs.h"
#include "data/order/class_names.h"
#include "data/order/order.h"
#include "data/order/pages.h"
#include "data/transforms/pipeline.h"
#include "framework/core/config/schema.h"
#include "framework/core/dump_json.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/system.h"

namespace precast::data::c {
namespace {

using nlohmann::ordered_json;

constexpr double kMaxThreads = 4096;
constexpr std::int64_t kMaxImagePx = 8192;
/// 34 years.
constexpr std::int64_t kMaxWaitMs = std::int64_t{1} << 40;
constexpr double kMaxRanks = 1 << 20;
/// With jpeg_index_mb -1, the index may use 1/16 of the memory limit, as in training.
constexpr std::uint64_t kIndexShareOfMemory = 16;

const TransformRegistries& transforms() {
  static const TransformRegistries registries = [] {
    TransformRegistries made;
    register_transforms(made);
    return made;
  }();
  return registries;
}

/// The options of a loader, named as in recipes.
struct Options {
  std::int64_t batch_size = 0;
  ConfigNode pipeline;
  std::int64_t image_size = 224;
  bool normalize = false;
  ConfigNode order;
  OrderOptions samples;
  std::string shuffle_window_mb = "auto";
  std::int64_t seed = 0;
  bool drop_last = false;
  std::int64_t workers = 0;
  std::int64_t batches_ahead = LoaderOptions{}.batches_ahead;
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::string on_corrupt = "fail";
  bool verify = false;
  std::string jpeg_dct = "ifast";
  std::int64_t jpeg_index_mb = -1;
  std::int64_t cache_mb = 256;

  void options(Schema& schema);
  /// Reports cache_mb, shuffle_window_mb and label_field as errors if they are given but have no
  /// effect. @param mapped whether the dataset has in_memory 1 or 2.
  void check(const Schema& schema, bool mapped, Diagnostics& diagnostics) const;
  /// Reads `order`, a name or {NAME: OPTIONS}, into `samples`.
  void read_order(Diagnostics& diagnostics);
};

void Options::options(Schema& schema) {
  schema.add("batch_size", &batch_size, "samples per batch").min(1).max(1 << 24).required();
  schema.add("pipeline", &pipeline, "transforms, as in a recipe");
  schema.add("image_size", &image_size, "image size (side of the square), px")
      .min(1)
      .max(double{kMaxImagePx});
  schema.add("normalize", &normalize, "images as normalised float32 instead of uint8");
  schema.add("order", &order, "order of the samples");
  schema.add("subset", &samples.subset, "samples to use");
  schema.add("filter", &samples.filter, "samples to use, selected with a condition");
  schema.add("repeats", &samples.repeats, "how often each sample occurs in an epoch")
      .min(1)
      .max(1000);
  schema.add("label_field", &samples.label_field,
             "integer field with the classes, for the orders weighted and class_balanced");
  schema.add(
      "shuffle_window_mb", &shuffle_window_mb,
      "shuffle window of the order quasi_random: MiB, ffcv or auto (the same as ffcv, but with "
      "world 1 at most a quarter of the memory)");
  schema.add("seed", &seed, "seed of order and augmentation").min(0);
  schema.add("drop_last", &drop_last, "leave out the last batch if it is smaller");
  schema.add("workers", &workers, "threads; 0: one per usable core").min(0).max(kMaxThreads);
  schema.add("batches_ahead", &batches_ahead, "batches loaded ahead").min(1).max(1024);
  schema.add("rank", &rank, "rank of this process, from 0").min(0).max(kMaxRanks);
  schema.add("world", &world, "processes that share an epoch").min(1).max(kMaxRanks);
  schema.add("on_corrupt", &on_corrupt, "what to do about damaged samples")
      .choices({"fail", "replace"});
  schema.add("verify", &verify, "check the checksum of each value");
  schema.add("jpeg_dct", &jpeg_dct, "inverse DCT of JPEGs").choices({"ifast", "islow"});
  schema
      .add("jpeg_index_mb", &jpeg_index_mb,
           "memory in MiB for the JPEG index; -1: a sixteenth of the memory limit")
      .min(-1)
      .max(1e9);
  schema
      .add("cache_mb", &cache_mb,
           "cache for dataset pages in MiB, if the dataset was opened with in_memory: 0")
      .min(1)
      .max(1e9);
}

void Options::read_order(Diagnostics& diagnostics) {
  if (order.kind == ConfigNode::Kind::null) return;
  if (order.kind == ConfigNode::Kind::scalar) {
    samples.name = order.scalar;
  } else if (order.kind == ConfigNode::Kind::map && order.entries.size() == 1) {
    samples.name = order.entries[0].key;
    samples.part = order.entries[0].value;
  } else {
    diagnostics.error(order.origin, "order",
                      fmt::format("expected a name or {{NAME: OPTIONS}}, got {}", order.text()));
  }
}

void Options::check(const Schema& schema, bool mapped, Diagnostics& diagnostics) const {
  if (mapped && schema.given("cache_mb")) {
    schema.report_unread(
        "cache_mb", "it has no effect with this dataset, only with one opened with in_memory: 0",
        diagnostics);
  }
  if (samples.name != "quasi_random" && schema.given("shuffle_window_mb")) {
    schema.report_unread(
        "shuffle_window_mb",
        fmt::format("it has no effect with order: {}, only with order: quasi_random", samples.name),
        diagnostics);
  }
  const bool reads_labels =
      samples.name == "class_balanced" ||
      (samples.name == "weighted" && samples.part.find("weight_field") == nullptr);
  if (!reads_labels && schema.given("label_field")) {
    schema.report_unread(
        "label_field",
        fmt::format("it has no effect with order: {}, only with class_balanced, or with weighted "
                    "and its option weights",
                    order.kind == ConfigNode::Kind::null ? samples.name : order.text()),
        diagnostics);
  }
}

/// Reports the items `normalize` and `layout` if they have no effect, because the images are not
/// converted.
void check_has_effect(const ImagePipeline& images, const Origin& origin, std::string_view key,
                      Diagnostics& diagnostics) {
  if (images.type || !(images.normalized || images.channels_first)) return;
  diagnostics.error(origin, key,
                    "expected convert, or the option normalize: true, because the items normalize "
                    "and layout have no effect on uint8 images, got neither. Add `convert: {type: "
                    "f32}`");
}

Pipeline make_pipeline(const Options& options, Diagnostics& diagnostics) {
  Pipeline pipeline = parse_pipeline(options.pipeline, "pipeline", transforms(),
                                     standard_val_pipeline(), diagnostics);
  // A wrong pipeline may lack the crop that the checks below need.
  if (!diagnostics.errors().empty()) return pipeline;
  set_default_channels(pipeline, diagnostics);
  const std::int64_t sizes[] = {options.image_size};
  check_image_sizes(pipeline, sizes, diagnostics);
  if (options.normalize) return pipeline;
  if (pipeline.outputs.empty())
    check_has_effect(pipeline.images, options.pipeline.origin, "pipeline", diagnostics);
  for (const OutputSpec& output : pipeline.outputs)
    check_has_effect(output.image, output.origin, output.key, diagnostics);
  return pipeline;
}

/// Returns the outputs of the batches. @throws ConfigError if the option `normalize` is true but
/// has no effect on an image, because the pipeline converts the image without normalising it; or if
/// the labels of an output mean different classes in different files.
std::vector<Output> read_outputs(const BetonReader& reader, const Pipeline& pipeline,
                                 const Options& options, const Schema& schema) {
  std::vector<Output> outputs = resolve_outputs(reader, pipeline, options.normalize);
  Diagnostics diagnostics;
  for (const Output& output : outputs) {
    if (is<IntegerOutput>(output)) check_common_classes(reader, output.field);
    const auto* const image = std::get_if<ImageOutput>(&output.kind);
    if (!options.normalize || image == nullptr || !image->pipeline.type ||
        image->pipeline.normalized)
      continue;
    diagnostics.error(
        schema.origin("normalize"), "normalize",
        fmt::format("expected the item normalize in the pipeline of '{}' as well, because the "
                    "option has no effect on images with convert, got convert alone. Add the item "
                    "(with a floating-point type), or leave out the option normalize: true",
                    output.name));
  }
  diagnostics.throw_if_errors();
  const std::string unusable = pipeline.outputs.empty() ? unusable_fields(reader) : "";
  if (!unusable.empty()) {
    log_warning("{}: batches cannot contain these fields, because of their types: {}",
                reader.path().string(), unusable);
  }
  return outputs;
}

std::shared_ptr<JpegIndex> make_index(const BetonReader& reader, std::int64_t mb) {
  return open_jpeg_index(reader, mb < 0 ? memory_limit_bytes() / kIndexShareOfMemory
                                        : static_cast<std::uint64_t>(mb) << 20);
}

LoaderOptions loader_options(const BetonReader& reader, Options& options) {
  // All ranks need the same order, but their hosts may have different amounts of memory.
  const std::uint64_t memory = options.world > 1 ? 0 : memory_limit_bytes();
  options.samples.window_pages =
      window_pages(options.shuffle_window_mb, options.batch_size * options.world,
                   reader.header().page_bytes, memory);
  LoaderOptions made;
  made.batch_size = options.batch_size;
  made.workers = static_cast<int>(options.workers > 0 ? options.workers : usable_cores());
  made.batches_ahead = static_cast<int>(options.batches_ahead);
  made.order = make_order(reader, options.samples);
  made.drop_last = options.drop_last;
  made.seed = static_cast<std::uint64_t>(options.seed);
  made.normalize = options.normalize;
  made.jpeg.accurate_dct = options.jpeg_dct == "islow";
  made.jpeg_index = make_index(reader, options.jpeg_index_mb);
  made.on_corrupt = options.on_corrupt == "replace" ? OnCorrupt::replace : OnCorrupt::fail;
  made.verify = options.verify;
  made.cache_bytes = static_cast<std::uint64_t>(options.cache_mb) << 20;
  return made;
}

/// Returns comparable values for options that depend on a file or on the host: an identifier of the
/// selected samples, because a list of samples may be moved to another file, and the shuffle window
/// in MiB, because `auto` is not the same window on every host.
ordered_json resolved(const BetonReader& reader, const Options& options) {
  ordered_json values = {
      {"subset", subset_identity(options.samples.subset, reader.size(), reader.path().string())}};
  if (options.samples.name == "quasi_random") {
    values["shuffle_window_mb"] =
        std::to_string(options.samples.window_pages * reader.header().page_bytes >> 20);
  }
  return values;
}

std::unique_ptr<precast_data_loader> open(const precast_data_dataset& dataset,
                                          const char* options_text) {
  Options options;
  Schema schema;
  options.options(schema);
  Diagnostics diagnostics;
  const ConfigNode given = parse_options(options_text, "options");
  schema.apply(given, diagnostics);
  schema.check_required(given.origin, diagnostics);
  options.read_order(diagnostics);
  options.check(schema, dataset.reader->disk() == nullptr, diagnostics);
  const Pipeline pipeline = make_pipeline(options, diagnostics);
  if (options.rank >= options.world) {
    diagnostics.error(
        given.origin, "rank",
        fmt::format("expected a number below world ({}), got {}", options.world, options.rank));
  }
  diagnostics.throw_if_errors();
  auto loader = std::make_unique<precast_data_loader>();
  // The end of a pass interrupts its reader's requests to a server, so each loader of remote files
  // has a separate reader.
  loader->reader = dataset.reader->remotes().empty() ? dataset.reader : dataset.open_again();
  const BetonReader& reader = *loader->reader;
  const std::vector<Output> all_outputs = read_outputs(reader, pipeline, options, schema);
  loader->loader = std::make_unique<Loader>(reader, pipeline, loader_options(reader, options));
  loader->image_size_px = options.image_size;
  loader->rank = static_cast<int>(options.rank);
  loader->world = static_cast<int>(options.world);
  ordered_json outputs = ordered_json::array();
  for (const Output& output : all_outputs) outputs.push_back(output.name);
  loader->info = dump_json(ordered_json{
      {"outputs", outputs}, {"options", schema.values()}, {"resolved", resolved(reader, options)}});
  return loader;
}

std::string statistics(const Loader& loader) {
  const LoaderStatistics all = loader.statistics();
  ordered_json workers = ordered_json::array();
  for (const WorkerStatistics& worker : all.workers)
    workers.push_back({{"busy", worker.busy}, {"waiting", worker.waiting}, {"cpu", worker.cpu}});
  ordered_json replaced = ordered_json::array();
  for (const precast::ReplacedSample& entry : all.replaced)
    replaced.push_back({{"sample", entry.sample}, {"by", entry.by}, {"error", entry.error}});
  return dump_json(ordered_json{{"samples", all.samples},
                                {"stored_bytes", all.stored_bytes},
                                {"disk_bytes", all.disk_bytes},
                                {"seconds_waited", loader.seconds_waited()},
                                {"workers", workers},
                                {"replaced", replaced}});
}

}  // namespace
}  // namespace precast::data::c

using namespace precast::data;  // NOLINT(google-build-using-namespace): for the C functions below

extern "C" {

precast_data_status precast_data_loader_open(const precast_data_dataset* dataset,
                                             const char* options, precast_data_loader** loader) {
  return c::guarded([&] {
    c::check_argument(loader, "loader");
    *loader = c::open(c::checked_handle(dataset, "dataset"), options).release();
    return PRECAST_DATA_OK;
  });
}

void precast_data_loader_destroy(precast_data_loader* loader) {
  c::destroy(loader);
}

const char* precast_data_loader_info(const precast_data_loader* loader) {
  return loader->info.c_str();
}

int64_t precast_data_loader_batches(const precast_data_loader* loader) {
  return loader->loader->batches(loader->world, loader->rank);
}

int64_t precast_data_loader_samples(const precast_data_loader* loader) {
  return loader->loader->samples(loader->world, loader->rank);
}

precast_data_status precast_data_loader_begin_epoch(precast_data_loader* handle, int64_t epoch,
                                                    int64_t first_batch, int64_t image_size_px) {
  return c::guarded([&] {
    precast_data_loader& loader = c::checked_handle(handle, "loader");
    if (epoch < 0 || first_batch < 0 || image_size_px < 0 || image_size_px > c::kMaxImagePx) {
      throw precast::ConfigError(fmt::format(
          "loader: expected epoch, first_batch and image_size >= 0, and images of at most {} px, "
          "got {}, {} and {}",
          c::kMaxImagePx, epoch, first_batch, image_size_px));
    }
    const std::scoped_lock lock(loader.mutex);
    loader.loader->begin_epoch(
        {.epoch = epoch,
         .first_batch = std::min(first_batch, loader.loader->batches(loader.world, loader.rank)),
         .image_size_px = image_size_px == 0 ? loader.image_size_px : image_size_px,
         .rank = loader.rank,
         .world = loader.world});
    return PRECAST_DATA_OK;
  });
}

precast_data_status precast_data_loader_next(precast_data_loader* handle, int64_t timeout_ms,
                                             precast_data_batch** batch) {
  return c::guarded([&] {
    c::check_argument(batch, "batch");
    precast_data_loader& loader = c::checked_handle(handle, "loader");
    auto made = std::make_unique<precast_data_batch>();
    const std::scoped_lock lock(loader.mutex);
    // A longer limit would overflow when it is added to the current time.
    const std::chrono::milliseconds limit(std::min(timeout_ms, c::kMaxWaitMs));
    if (timeout_ms >= 0 && !loader.loader->wait_for(limit)) return PRECAST_DATA_TIMEOUT;
    std::optional<HostBatch> next = loader.loader->next();
    if (!next) return PRECAST_DATA_END;
    made->batch = *std::move(next);
    *batch = made.release();
    return PRECAST_DATA_OK;
  });
}

precast_data_status precast_data_loader_statistics(precast_data_loader* handle, const char** json) {
  return c::guarded([&] {
    c::check_argument(json, "json");
    precast_data_loader& loader = c::checked_handle(handle, "loader");
    const std::scoped_lock lock(loader.mutex);
    loader.statistics = c::statistics(*loader.loader);
    *json = loader.statistics.c_str();
    return PRECAST_DATA_OK;
  });
}
}
