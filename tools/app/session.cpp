#include "tools/app/session.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/jobs/index_dataset.h"
#include "data/order/pages.h"
#include "data/torch/batch_source.h"
#include "framework/core/archive/weights_file.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "framework/engine/rehearsal.h"
#include "framework/engine/weights.h"
#include "tools/app/model_probe.h"
#include "tools/cli/custom_fields.h"

namespace precast::tools {
namespace {

/// Pages that the process cache holds in addition to a window of open ones, and for evaluation.
/// data.jpeg_index_mb -1: the share of the memory limit that the index may take.
constexpr std::uint64_t kIndexShareOfMemory = 16;
constexpr std::uint64_t kPagesAhead = 16;

/// data.cache_mb; if that is 0, its automatic value.
std::uint64_t cache_bytes(const data::BetonReader& reader, const TrainConfig& config) {
  if (config.data.cache_mb > 0) return static_cast<std::uint64_t>(config.data.cache_mb) << 20;
  const std::uint64_t page_bytes = reader.header().page_bytes;
  std::uint64_t needed = kPagesAhead * page_bytes;
  if (config.data.order == "quasi_random") {
    const std::uint64_t open =
        data::window_pages(config.data.shuffle_window_mb, config.global_batch_size(), page_bytes,
                           memory_limit_bytes());
    needed += std::min(open, reader.file_bytes() / page_bytes + 1) * page_bytes;
  }
  return std::max(needed,
                  memory_limit_bytes() / 4 / static_cast<std::uint64_t>(config.local_world));
}

data::LoaderOptions loader_options(const TrainConfig& config) {
  data::LoaderOptions options;
  options.workers = loader_threads(config);
  options.batches_ahead = static_cast<int>(config.data.batches_ahead);
  options.seed = static_cast<std::uint64_t>(config.training.seed);
  options.jpeg.accurate_dct = config.data.jpeg_dct == "islow";
  options.verify = config.data.verify != 0;
  options.on_corrupt =
      config.data.on_corrupt == "replace" ? data::OnCorrupt::replace : data::OnCorrupt::fail;
  return options;
}

data::LoaderOptions train_loader_options(const data::BetonReader& reader, const TrainData& data,
                                         const TrainConfig& config) {
  data::LoaderOptions options = loader_options(config);
  options.batch_size = config.rank_batch_size();
  options.drop_last = true;
  options.order = data.order;
  options.jpeg_index = data.index;
  options.cache_bytes = cache_bytes(reader, config);
  return options;
}

data::FieldChoice field_choice(const TrainConfig& config) {
  return {.inputs = config.data.inputs, .targets = config.data.targets};
}

/// The label field; empty: the file's first integer field.
std::string label_field(const TrainConfig& config) {
  return config.data.targets.empty() ? "" : config.data.targets.front();
}

/// Number of classes of the weights' last layer; 0 if it does not have torchvision's name.
std::int64_t classes_of_weights(const std::string& path) {
  const WeightsFile file = load_weights(path);
  const TensorRecord* bias = file.find("fc.bias");
  return bias != nullptr && bias->shape.size() == 1 ? bias->shape[0] : 0;
}

/// @throws ConfigError if a prefix names no parameter, or none is left to train.
void freeze_parameters(const Model& model, const std::vector<std::string>& prefixes) {
  const std::vector<NamedTensor> parameters = model.parameters();
  for (const std::string& prefix : prefixes) {
    bool found = false;
    for (const NamedTensor& parameter : parameters) {
      if (!parameter.name.starts_with(prefix)) continue;
      parameter.tensor.requires_grad_(false);
      found = true;
    }
    if (!found) {
      throw ConfigError(
          fmt::format("training.freeze: expected the beginning of a parameter's name "
                      "(such as '{}'), got '{}'",
                      parameters.front().name, prefix));
    }
  }
  const auto trains = [](const NamedTensor& p) { return p.tensor.requires_grad(); };
  if (std::ranges::none_of(parameters, trains))
    throw ConfigError("training.freeze: expected something left to train, got every parameter");
}

}  // namespace

at::Device prepare_device(TrainConfig& config, int local_rank, int local_world) {
  config.local_world = local_world;
  const bool has_gpu = at::globalContext().hasCUDA();
  if (config.training.device == "auto") config.training.device = has_gpu ? "cuda" : "cpu";
  if (config.training.device == "cpu") {
    if (config.training.precision == "fp16") {
      throw ConfigError(
          "training.precision: expected fp32 or bf16 on a CPU, got fp16 (no GPU was found)");
    }
    if (config.training.cuda_graphs == "on")
      throw ConfigError("training.cuda_graphs: expected auto or off on a CPU, got on");
    at::set_num_threads(std::max(1, usable_cores() / local_world));
    return at::kCPU;
  }
  if (!has_gpu) {
    throw DeviceError(
        "training.device: expected a GPU that libtorch can use, got none. See precast doctor");
  }
  at::globalContext().setBenchmarkCuDNN(true);
  // srun --gpus-per-task=1 shows each rank its own GPU as number 0.
  const int gpus = at::detail::getCUDAHooks().getNumGPUs();
  if (gpus > 1 && local_rank >= gpus) {
    throw DeviceError(fmt::format(
        "ranks: expected at most {} on this host, one for each GPU, got {}. See dist.nproc", gpus,
        local_world));
  }
  const at::Device device(at::kCUDA, static_cast<at::DeviceIndex>(std::min(local_rank, gpus - 1)));
  // Without this, code that does not name a device would use GPU 0 in every rank.
  c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device);
  return device;
}

int loader_threads(const TrainConfig& config) {
  if (config.data.num_workers > 0) return static_cast<int>(config.data.num_workers);
  return data::loader_threads(usable_cores(), static_cast<int>(config.local_world),
                              /*gpu_host=*/config.training.device != "cpu");
}

engine::GraphMode graph_mode(const TrainConfig& config) {
  if (config.training.cuda_graphs == "off") return engine::GraphMode::off;
  return config.training.cuda_graphs == "on" ? engine::GraphMode::on : engine::GraphMode::automatic;
}

std::unique_ptr<data::BetonReader> open_dataset(std::string_view key, const std::string& path,
                                                const TrainConfig& config) {
  if (path.empty()) {
    throw ConfigError(fmt::format(
        "{}: missing. Expected the path of a .beton file, as --{}=FILE.beton", key, key));
  }
  data::BlobAccess access = data::BlobAccess::mapped;
  if (config.data.in_memory == 0) {
    access =
        config.data.direct_io != 0 ? data::BlobAccess::on_disk_direct : data::BlobAccess::on_disk;
  }
  return std::make_unique<data::BetonReader>(path, access,
                                             read_layouts(config.data.fields, "data.fields"));
}

std::shared_ptr<const data::SampleOrder> make_train_order(const data::BetonReader& reader,
                                                          Recipe& recipe,
                                                          const Registries& registries) {
  auto& keys = recipe.config.data;
  const std::uint64_t page_bytes = reader.header().page_bytes;
  data::OrderOptions options{.name = keys.order,
                             .subset = keys.subset,
                             .filter = keys.filter,
                             .repeats = keys.repeats,
                             .label_field = label_field(recipe.config),
                             .part = recipe.order.options};
  options.window_pages = data::window_pages(
      keys.shuffle_window_mb, recipe.config.global_batch_size(), page_bytes, memory_limit_bytes());
  if (keys.order == "quasi_random") {
    keys.shuffle_window_mb = std::to_string(options.window_pages * page_bytes >> 20);
    recipe.resolved["data.shuffle_window_mb"] = keys.shuffle_window_mb;
  }
  try {
    return data::make_order(registries.orders, reader, options);
  } catch (const ConfigError& error) {
    throw ConfigError(std::string("data.") + error.what());
  }
}

TrainData make_train_data(const data::BetonReader& reader, Recipe& recipe,
                          const Registries& registries) {
  const std::int64_t index_mb = recipe.config.data.jpeg_index_mb;
  const std::uint64_t index_bytes = index_mb < 0
                                        ? memory_limit_bytes() / kIndexShareOfMemory /
                                              static_cast<std::uint64_t>(recipe.config.local_world)
                                        : static_cast<std::uint64_t>(index_mb) << 20;
  return {make_train_order(reader, recipe, registries), data::open_jpeg_index(reader, index_bytes)};
}

std::int64_t count_classes(const data::BetonReader& reader, const TrainConfig& config,
                           std::int64_t limit) {
  const std::string name = label_field(config);
  const std::size_t field =
      name.empty() ? reader.first_field(data::FieldType::integer) : reader.field(name);
  if (field >= reader.fields().size() || reader.fields()[field].type != data::FieldType::integer) {
    throw DataError(
        fmt::format("{}: expected an integer field with labels, got none", reader.path().string()));
  }
  const std::int64_t bound = limit > 0 ? limit : kMostClasses;
  std::int64_t classes = 0;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    const std::int64_t label = reader.integer(sample, field);
    if (label < 0 || label >= bound) {
      throw DataError(fmt::format("{}: sample {}: expected a label in [0, {}), got {}",
                                  reader.path().string(), sample, bound, label));
    }
    classes = std::max(classes, label + 1);
  }
  return limit > 0 ? limit : classes;
}

std::unique_ptr<Model> build_model(const Recipe& recipe, const TrainPlan& plan,
                                   const Registries& registries, at::Device device,
                                   engine::OtherHead head) {
  at::manual_seed(static_cast<std::uint64_t>(recipe.config.training.seed));
  std::unique_ptr<Model> model = make_model(registries.models, plan.model);
  if (!recipe.config.model.weights.empty()) {
    engine::load_model_weights(*model, recipe.config.model.weights, head);
  }
  model->to(device, plan.channels_last);
  freeze_parameters(*model, recipe.config.training.freeze);
  return model;
}

BatchMaker make_batch_maker(const data::BetonReader* reader, const data::Pipeline& pipeline,
                            const Recipe& recipe, const TrainPlan& plan, at::Device device) {
  const at::ScalarType type = image_dtype(device, plan.precision);
  if (reader != nullptr)
    return data::make_batch_maker(*reader, pipeline, field_choice(recipe.config), device, type);
  return [device, type](std::int64_t samples, std::int64_t size_px) {
    return make_batch(at::zeros({samples, 3, size_px, size_px}, at::device(device).dtype(type)),
                      at::zeros({samples}, at::device(device).dtype(at::kLong)));
  };
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

std::unique_ptr<BatchSource> make_train_source(const data::BetonReader& reader,
                                               const TrainData& data, const Recipe& recipe,
                                               const TrainPlan& plan, at::Device device) {
  return data::make_batch_source(
      reader, recipe.train_pipeline, train_loader_options(reader, data, recipe.config),
      field_choice(recipe.config), device, image_dtype(device, plan.precision));
}

data::MemoryPlan plan_train_memory(const data::BetonReader& reader, const TrainData& data,
                                   const Recipe& recipe, const TrainPlan& plan, at::Device device) {
  data::LoaderOptions options = train_loader_options(reader, data, recipe.config);
  options.normalize = device.is_cpu();
  const std::int64_t largest_px =
      plan.image_size_px.empty() ? 1 : *std::ranges::max_element(plan.image_size_px);
  data::MemoryPlan memory = data::plan_memory(reader, recipe.train_pipeline, options, largest_px,
                                              static_cast<int>(recipe.config.world()));
  memory.batches_locked = device.is_cuda();
  if (device.is_cuda()) {
    // Batches that are being copied, and those that wait for it.
    const std::uint64_t one =
        memory.batches / static_cast<std::uint64_t>(options.batches_ahead + 1);
    memory.batches += one * (data::kCopiedAhead + 2);
  }
  return memory;
}

std::unique_ptr<BatchSource> make_val_source(const data::BetonReader& reader, const Recipe& recipe,
                                             const TrainPlan& plan, at::Device device) {
  data::LoaderOptions options = loader_options(recipe.config);
  options.batch_size = recipe.config.validation.batch_size;
  options.cache_bytes = kPagesAhead * reader.header().page_bytes;
  options.jpeg_index = data::open_jpeg_index(reader, /*max_bytes=*/0);
  return data::make_batch_source(reader, recipe.val_pipeline, options, field_choice(recipe.config),
                                 device, image_dtype(device, plan.precision));
}

engine::Evaluator make_evaluator(const Recipe& recipe, const TrainPlan& plan, at::Device device) {
  return engine::Evaluator({.device = device,
                            .precision = plan.precision,
                            .channels_last = plan.channels_last,
                            .image_size_px = recipe.config.validation.resolution,
                            .flip_tta = recipe.config.validation.lr_tta != 0,
                            .metrics = recipe.metrics,
                            .num_classes = plan.model.num_classes});
}

void run_preflight(const Recipe& recipe, const TrainPlan& plan, const engine::StepParts& parts,
                   const engine::Evaluator& evaluator, const data::BetonReader& train,
                   const data::BetonReader& val, std::int64_t val_samples, at::Device device) {
  const std::string& wanted = recipe.config.training.preflight;
  if (wanted == "off" || (wanted == "auto" && !device.is_cuda())) return;
  engine::rehearse(
      plan, parts, evaluator,
      {.device = device,
       .train_batch = make_batch_maker(&train, recipe.train_pipeline, recipe, plan, device),
       .val_batch = make_batch_maker(&val, recipe.val_pipeline, recipe, plan, device),
       .batches_ahead = device.is_cuda() ? data::kCopiedAhead : 0,
       .val_batch_size = recipe.config.validation.batch_size,
       .val_samples = val_samples,
       .evaluate_each_epoch = recipe.config.logging.log_level > 0});
}

EvalSession make_eval_session(Recipe& recipe, const Registries& registries, bool labels_matter) {
  TrainConfig& config = recipe.config;
  if (config.model.weights.empty()) {
    throw ConfigError(
        "model.weights: missing. Expected the weights to evaluate, as --model.weights=FILE");
  }
  std::int64_t classes = config.model.num_classes;
  if (classes == 0) classes = classes_of_weights(config.model.weights);
  auto reader = open_dataset("data.val_dataset", config.data.val_dataset, config);
  if (labels_matter || classes == 0) classes = count_classes(*reader, config, classes);

  const at::Device device = prepare_device(config, /*local_rank=*/0, /*local_world=*/1);
  TrainPlan plan = make_plan(recipe, registries, 0, classes);
  auto model = build_model(recipe, plan, registries, device, engine::OtherHead::refuse);
  const BatchMaker batches =
      make_batch_maker(reader.get(), recipe.val_pipeline, recipe, plan, device);
  check_output(*model, plan.model, batches(2, config.validation.resolution));
  auto source = make_val_source(*reader, recipe, plan, device);
  engine::Evaluator evaluator = make_evaluator(recipe, plan, device);
  return {std::move(reader), std::move(model), std::move(source), evaluator, std::move(plan)};
}

}  // namespace precast::tools
