#include "tools/app/session.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "data/jobs/index_dataset.h"
#include "data/order/class_names.h"
#include "data/order/pages.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/system.h"
#include "framework/engine/rehearsal.h"
#include "framework/engine/weights.h"
#include "framework/process/stop_signals.h"
#include "tools/app/frozen_parameters.h"
#include "tools/app/images_on_gpu.h"
#include "tools/app/normalization.h"
#include "tools/app/output_choice.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/shared_loading.h"
#include "tools/app/task.h"
#include "tools/cli/custom_fields.h"

namespace precast::tools {
namespace {

/// With data.jpeg_index_mb: -1, the JPEG index may use the memory limit divided by this number.
constexpr std::uint64_t kIndexShareOfMemory = 16;
/// The number of pages in the process cache in evaluation. In training with data.cache_mb: 0, the
/// cache has room for at least these pages and the window of open pages.
constexpr std::uint64_t kPagesAhead = 16;
constexpr std::int64_t kImageDims = 4;

std::uint64_t ranks_of_host(const ResolvedRun& run) {
  return static_cast<std::uint64_t>(run.local_world);
}

/// data.jpeg_index_mb; if that is -1, its automatic value.
std::uint64_t index_bytes(const ResolvedRun& run) {
  const std::int64_t given_mb = run.config().data.jpeg_index_mb;
  return given_mb < 0 ? memory_limit_bytes() / kIndexShareOfMemory
                      : static_cast<std::uint64_t>(given_mb) << 20;
}

/// data.cache_mb; if that is 0, its automatic value.
std::uint64_t cache_bytes(const data::BetonReader& reader, const TrainData& data,
                          const ResolvedRun& run) {
  const std::int64_t given_mb = run.config().data.cache_mb;
  if (given_mb > 0) return static_cast<std::uint64_t>(given_mb) << 20;
  const std::uint64_t page_bytes = reader.header().page_bytes;
  // With several files, a page of the merged dataset may span two pages of a file.
  const std::uint64_t file_pages_per_page = reader.num_files() > 1 ? 2 : 1;
  const std::uint64_t open_pages = std::min(file_pages_per_page * data.window_pages,
                                            reader.file_bytes() / page_bytes + reader.num_files());
  return std::max((kPagesAhead + open_pages) * page_bytes,
                  memory_limit_bytes() / 4 / ranks_of_host(run));
}

data::LoaderOptions loader_options(const ResolvedRun& run) {
  const TrainConfig& config = run.config();
  data::LoaderOptions options;
  options.workers = run.loader_threads();
  options.batches_ahead = static_cast<int>(config.data.batches_ahead);
  options.seed = static_cast<std::uint64_t>(config.training.seed);
  options.jpeg.accurate_dct = config.data.jpeg_dct == "islow";
  options.verify = config.data.verify;
  options.on_corrupt =
      config.data.on_corrupt == "replace" ? data::OnCorrupt::replace : data::OnCorrupt::fail;
  // With several ranks, all stop after the same step, so no loader may stop on its own.
  if (run.world == 1) options.stopped = [] { return StopSignals::requested().load(); };
  return options;
}

/// @param pipeline the pipeline for this dataset.
std::unique_ptr<data::BetonReader> open_files(const std::vector<std::filesystem::path>& paths,
                                              const TrainConfig& config,
                                              const data::Pipeline& pipeline) {
  data::BlobAccess access = data::BlobAccess::mapped;
  if (config.data.in_memory == 0) {
    access = config.data.direct_io ? data::BlobAccess::on_disk_direct : data::BlobAccess::on_disk;
  }
  data::BetonOptions options = read_layouts(config.data.fields, "data.fields");
  options.remote = {.http = {.retry_s = config.data.http_retry_s}, .cache = config.data.cache_dir};
  auto reader = std::make_unique<data::BetonReader>(paths, access, options);
  std::vector<std::string> targets = config.data.targets;
  if (targets.empty()) targets.emplace_back();
  for (const std::string& target : targets) {
    if (const auto labels = find_labels(*reader, pipeline, target))
      data::check_common_classes(*reader, labels->field);
  }
  return reader;
}

/// Checks that labels mean the same classes in both sets, if the targets are class indices.
/// @return class_warnings(). @throws ConfigError; DataError if a set has no labels
std::vector<std::string> check_classes(const data::BetonReader& train, const data::BetonReader& val,
                                       const Recipe& recipe) {
  if (recipe.targets != TargetKind::class_index) return {};
  const TrainConfig& config = recipe.config;
  const std::size_t train_field = labels_of_loss(train, recipe.train_pipeline, config).field;
  const std::size_t val_field = labels_of_loss(val, recipe.val_pipeline, config).field;
  check_same_classes(train, train_field, val, val_field);
  return class_warnings(train, train_field, train_order_options(recipe, train), val, val_field);
}

}  // namespace

std::unique_ptr<data::BetonReader> open_dataset(std::string_view key, const Recipe& recipe) {
  std::vector<std::filesystem::path> paths;
  std::string location;
  for (const NamedDataset& dataset : recipe.datasets) {
    if (dataset.key != key || dataset.path.empty()) continue;
    paths.emplace_back(dataset.path);
    location = fmt::format("{}: {}: ", dataset.origin.text(), key);
  }
  if (paths.empty()) {
    if (key == "data.train_dataset" && !recipe.outside.empty())
      recipe.refuse(key, fmt::format("expected files, got {}", recipe.outside));
    throw ConfigError(fmt::format(
        "{}: missing. Expected the path of a .beton file, such as --{}=FILE.beton", key, key));
  }
  if (paths.size() == 1) location.clear();
  const bool trains = key == "data.train_dataset";
  try {
    return open_files(paths, recipe.config, trains ? recipe.train_pipeline : recipe.val_pipeline);
  } catch (const DataError& error) {
    throw DataError(location + error.what());
  } catch (const ConfigError& error) {
    throw ConfigError(location + error.what());
  }
}

std::string_view fields_key(const Recipe& recipe) {
  return recipe.outside.empty() ? "data.train_dataset" : "data.val_dataset";
}

data::FieldChoice field_choice(const Recipe& recipe) {
  return {.inputs = recipe.config.data.inputs,
          .targets = recipe.config.data.targets,
          .needs_target = recipe.targets != TargetKind::none};
}

data::OrderOptions train_order_options(const Recipe& recipe, const data::BetonReader& reader) {
  const TrainConfig& config = recipe.config;
  std::string label = config.data.targets.empty() ? "" : config.data.targets.front();
  // The order must use the field that the loss reads, which may not be the order's default.
  if (const auto labels = find_labels(reader, recipe.train_pipeline, config))
    label = reader.fields()[labels->field].name;
  return {.name = config.data.order,
          .subset = config.data.subset,
          .filter = config.data.filter,
          .repeats = config.data.repeats,
          .label_field = std::move(label),
          .part = recipe.order.options};
}

TrainData make_train_order(const data::BetonReader& reader, const ResolvedRun& run,
                           const Registries& registries) {
  const TrainConfig& config = run.config();
  data::OrderOptions options = train_order_options(run.recipe, reader);
  options.window_pages = data::window_pages(config.data.shuffle_window_mb, run.global_batch_size(),
                                            reader.header().page_bytes, memory_limit_bytes());
  try {
    return {.order = data::make_order(registries.orders, reader, options),
            .window_pages = config.data.order == "quasi_random" ? options.window_pages : 0,
            .index = nullptr};
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("data.") + error.what());
  }
}

TrainData make_train_data(const data::BetonReader& reader, const ResolvedRun& run,
                          const Registries& registries) {
  TrainData data = make_train_order(reader, run, registries);
  data.index = data::open_jpeg_index(reader, index_bytes(run));
  return data;
}

void share_index(const TrainData& data, const ResolvedRun& run, Communicator& ranks) {
  if (ranks.world() == 1) return;
  data::JpegIndex* const index = data.index.get();
  const bool makes = index != nullptr && run.local_rank == 0 && run.local_world > 1;
  // On several hosts, each host has its own index.
  const std::vector<std::string> addresses = ranks.all_gather(makes ? index->share() : "");
  if (index == nullptr) return;
  if (!makes) {
    for (const std::string& address : addresses)
      if (index->join(address)) break;
  }
  // Has no effect on a shared index.
  index->limit(index_bytes(run) / ranks_of_host(run));
}

nlohmann::ordered_json resolved_values(const Recipe& recipe, const data::BetonReader& reader,
                                       const TrainData& data) {
  nlohmann::ordered_json values = recipe.resolved;
  if (data.window_pages > 0) {
    values["data.shuffle_window_mb"] =
        std::to_string(data.window_pages * reader.header().page_bytes >> 20);
  }
  return values;
}

void check_val_dataset(const data::BetonReader& train, const data::BetonReader& val,
                       const ResolvedRun& run, std::int64_t classes, bool warns) {
  const Recipe& recipe = run.recipe;
  std::vector<std::string> warnings = compare_outputs(
      choose_outputs(train, recipe, recipe.train_pipeline), train.path().string(), val, recipe);
  for (std::string& warning : check_classes(train, val, recipe))
    warnings.push_back(std::move(warning));
  if (std::string other = normalization_warning(recipe, train, val); !other.empty())
    warnings.push_back(std::move(other));
  if (warns)
    for (const std::string& warning : warnings) log_warning("{}", warning);
  static_cast<void>(count_outputs(val, recipe, recipe.val_pipeline, classes));
  check_images_on_gpu(val, recipe.val_pipeline, run, {recipe.config.validation.resolution});
}

std::unique_ptr<Model> build_model(const ResolvedRun& run, const TrainPlan& plan,
                                   const Registries& registries, WeightsUse use,
                                   const data::BetonReader* data) {
  const TrainConfig& config = run.config();
  at::manual_seed(static_cast<std::uint64_t>(config.training.seed));
  std::unique_ptr<Model> model = make_model(registries.models, plan.model);
  if (!config.model.weights.empty()) {
    const WeightsFile file = load_weights(config.model.weights);
    check_weights(file, describe_weights(run.recipe, plan, registries, *model, data, use), use,
                  /*strict=*/config.model.weights_check == "on",
                  has_image_input(run.recipe.val_pipeline, config, data));
    std::optional<engine::NumClasses> other_head;
    if (use == WeightsUse::train) {
      warn_of_averages(file);
      other_head =
          engine::NumClasses{.file = classes_of_weights(file), .model = plan.model.num_classes};
    }
    engine::load_model_weights(*model, config.model.weights, other_head);
  }
  model->to(run.device, plan.channels_last);
  freeze_parameters(*model, config.training.freeze);
  return model;
}

BatchMaker make_batch_maker(const data::BetonReader* reader, const data::Pipeline& pipeline,
                            const ResolvedRun& run, const TrainPlan& plan) {
  const at::ScalarType type = image_dtype(run.device, plan.precision);
  if (reader != nullptr)
    return data::make_batch_maker(*reader, pipeline, field_choice(run.recipe), run.device, type);
  return [device = run.device, type, channels = plan.model.in_channels](std::int64_t samples,
                                                                        std::int64_t size_px) {
    return make_batch(
        at::zeros({samples, channels, size_px, size_px}, at::device(device).dtype(type)),
        at::zeros({samples}, at::device(device).dtype(at::kLong)));
  };
}

bool reads_images(const data::BetonReader& reader, const ResolvedRun& run, const TrainPlan& plan) {
  return make_batch_maker(&reader, run.recipe.val_pipeline, run, plan)(
             1, run.config().validation.resolution)
             .input()
             .dim() == kImageDims;
}

std::vector<NamedTensor> trainable_parameters(const Model& model) {
  std::vector<NamedTensor> trainable;
  for (NamedTensor& parameter : model.parameters()) {
    if (parameter.tensor.requires_grad()) trainable.push_back(std::move(parameter));
  }
  return trainable;
}

at::ScalarType image_dtype(at::Device device, Precision precision) {
  if (!device.is_cuda() || precision == Precision::fp32) return at::kFloat;
  return precision == Precision::fp16 ? at::kHalf : at::kBFloat16;
}

data::LoaderOptions train_loader_options(const data::BetonReader& reader, const TrainData& data,
                                         const ResolvedRun& run) {
  data::LoaderOptions options = loader_options(run);
  options.batch_size = run.rank_batch_size();
  options.drop_last = true;
  options.order = data.order;
  options.jpeg_index = data.index;
  options.cache_bytes = cache_bytes(reader, data, run);
  return options;
}

data::LoaderOptions val_loader_options(const data::BetonReader& reader, const ResolvedRun& run) {
  data::LoaderOptions options = loader_options(run);
  options.batch_size = run.config().validation.batch_size;
  options.cache_bytes = kPagesAhead * reader.header().page_bytes;
  options.jpeg_index = data::open_jpeg_index(reader, /*max_bytes=*/0);
  return options;
}

std::unique_ptr<BatchSource> make_train_source(const data::BetonReader& reader,
                                               const TrainData& data, const ResolvedRun& run,
                                               const TrainPlan& plan) {
  data::LoaderOptions options = train_loader_options(reader, data, run);
  options.plan_images = keeps_images_on_gpu(run);
  options.cancel_copy = &StopSignals::requested();
  return data::make_batch_source(
      reader, run.recipe.train_pipeline, options, field_choice(run.recipe), run.device,
      image_dtype(run.device, plan.precision), shared_ring(reader, data, run, plan));
}

data::MemoryPlan plan_train_memory(const data::BetonReader& reader, const TrainData& data,
                                   const ResolvedRun& run, const TrainPlan& plan) {
  data::LoaderOptions options = train_loader_options(reader, data, run);
  options.normalize = run.device.is_cpu();
  options.plan_images = keeps_images_on_gpu(run);
  const std::int64_t largest_px =
      plan.image_size_px.empty() ? 1 : *std::ranges::max_element(plan.image_size_px);
  data::MemoryPlan memory = data::plan_memory(reader, run.recipe.train_pipeline, options,
                                              largest_px, static_cast<int>(run.world));
  memory.batches_locked = run.device.is_cuda();
  if (run.device.is_cuda()) {
    // Batches that are being copied, and batches that wait to be copied.
    const std::uint64_t one =
        memory.batches / static_cast<std::uint64_t>(options.batches_ahead + 1);
    memory.batches += one * (data::kCopiedAhead + 2);
  }
  return memory;
}

std::unique_ptr<BatchSource> make_val_source(const data::BetonReader& reader,
                                             const ResolvedRun& run, const TrainPlan& plan,
                                             const data::LoaderOptions& options) {
  return data::make_batch_source(reader, run.recipe.val_pipeline, options, field_choice(run.recipe),
                                 run.device, image_dtype(run.device, plan.precision));
}

bool mirrors_images(const Recipe& recipe) {
  return recipe.config.validation.lr_tta && recipe.targets != TargetKind::values &&
         recipe.targets != TargetKind::none;
}

engine::Evaluator make_evaluator(const ResolvedRun& run, const TrainPlan& plan) {
  return engine::Evaluator(
      {.device = run.device,
       .precision = plan.precision,
       .channels_last = plan.channels_last,
       .image_size_px = run.config().validation.resolution,
       .flip_tta = mirrors_images(run.recipe),
       .metrics = run.recipe.metrics,
       .targets = run.recipe.targets,
       .num_classes = run.recipe.targets == TargetKind::class_index ? plan.model.num_classes : 0});
}

void run_preflight(const ResolvedRun& run, const TrainPlan& plan, const engine::StepParts& parts,
                   const engine::Evaluator& evaluator, const data::BetonReader& train,
                   const data::BetonReader& val, std::int64_t val_samples) {
  const TrainConfig& config = run.config();
  const std::string& setting = config.training.preflight;
  const bool on_gpu = run.device.is_cuda();
  if (setting == "off" || (setting == "auto" && !on_gpu)) return;
  engine::rehearse(
      plan, parts, evaluator,
      {.device = run.device,
       .train_batch = make_batch_maker(&train, run.recipe.train_pipeline, run, plan),
       .val_batch = make_batch_maker(&val, run.recipe.val_pipeline, run, plan),
       .batches_ahead = on_gpu ? data::kCopiedAhead + data::kMaxInUse - 1 : 0,
       .val_batch_size = config.validation.batch_size,
       .val_samples = val_samples,
       .evaluate_each_epoch = config.logging.log_level > 0,
       .stored_image_bytes = image_bytes_on_gpu(train, run.recipe.train_pipeline, run) +
                             image_bytes_on_gpu(val, run.recipe.val_pipeline, run)});
}

}  // namespace precast::tools
