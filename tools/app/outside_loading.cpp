#include "tools/app/outside_loading.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "data/outside/outside_batches.h"
#include "data/outside/zmq_address.h"
#include "data/torch/outside_source.h"
#include "framework/core/error.h"
#include "framework/process/stop_signals.h"
#include "tools/app/recipe_parts.h"
#include "tools/app/session.h"

namespace precast::tools {
namespace {

constexpr const char* kTrainDataset = "data.train_dataset";
/// Keys that have an effect only if this process loads the batches.
constexpr std::string_view kLoaderKeys[] = {"pipeline.train", "data.order", "data.subset",
                                            "data.filter", "data.repeats"};
/// Keys that have an effect only if another program makes the batches.
constexpr std::string_view kProducerKeys[] = {"data.batches_per_epoch", "data.producer_timeout_s"};

template <typename Keys>
void report_unread(const Keys& keys, const std::string& reason, const Schema& schema,
                   Diagnostics& diagnostics) {
  for (const std::string_view key : keys)
    if (schema.given(key)) schema.report_unread(key, reason, diagnostics);
}

/// @return the address of the producer; empty if the recipe names no producer.
std::string address_of(const Recipe& recipe, const Schema& schema, Diagnostics& diagnostics) {
  const std::vector<std::string>& named = recipe.config.data.train_dataset;
  const auto is_zmq = [](const std::string& file) { return file.starts_with(data::kZmqScheme); };
  const auto zmq = std::ranges::find_if(named, is_zmq);
  if (zmq == named.end())
    return recipe.ring.name.empty() || !recipe.ring.files.empty() ? std::string() : named.front();
  try {
    if (named.size() > 1)
      throw ConfigError(
          fmt::format("expected files, or a single address, got {} and other datasets", *zmq));
    data::check_producer_address(*zmq);
  } catch (const ConfigError& error) {
    diagnostics.error(schema.origin(kTrainDataset), kTrainDataset, error.what());
  }
  return *zmq;
}

/// The classes of the first target; none if it has no classes.
data::ClassRange classes_of(const Recipe& recipe, const TrainPlan& plan) {
  data::ClassRange classes;
  const bool has_masks = recipe.targets == TargetKind::class_mask;
  if (!has_masks && recipe.targets != TargetKind::class_index) return classes;
  classes.count = plan.model.num_classes;
  // -1 means that no class is ignored.
  if (has_masks && ignored_class(recipe) != -1) classes.ignored = ignored_class(recipe);
  return classes;
}

data::OutsideOptions options_of(const ResolvedRun& run, const data::OutsideSpec& spec,
                                const TrainPlan& plan) {
  data::OutsideOptions options;
  const double seconds = run.config().data.producer_timeout_s;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  options.stopped = [] { return StopSignals::requested().load(); };
  const std::int64_t largest_px =
      plan.image_size_px.empty() ? 1 : *std::ranges::max_element(plan.image_size_px);
  options.max_message_bytes = data::max_outside_message_bytes(spec, largest_px);
  return options;
}

std::unique_ptr<BatchSource> open_source(const std::string& address, data::OutsideSpec spec,
                                         const ResolvedRun& run, const TrainPlan& plan) {
  check_outside_ranks(run.recipe, address, run.world);
  spec.batch_size = run.rank_batch_size();
  spec.classes = classes_of(run.recipe, plan);
  data::OutsideOptions options = options_of(run, spec, plan);
  return data::make_outside_source(data::open_outside_batches(address, std::move(options)),
                                   std::move(spec), run.device,
                                   image_dtype(run.device, plan.precision));
}

}  // namespace

void check_outside_ranks(const Recipe& recipe, const std::string& address, std::int64_t ranks) {
  if (ranks <= 1) return;
  const TrainConfig& config = recipe.config;
  const char* key = kTrainDataset;  // another program has started the ranks
  if (config.training.distributed) key = "training.distributed";
  if (!config.dist.nproc.empty()) key = "dist.nproc";
  recipe.refuse(key, fmt::format("expected one rank with batches from {}, got {}", address, ranks));
}

void find_outside_producer(Recipe& recipe, const Schema& schema, Diagnostics& diagnostics) {
  recipe.outside = address_of(recipe, schema, diagnostics);
  if (recipe.outside.empty()) {
    report_unread(kProducerKeys, "it has no effect unless another program makes the batches",
                  schema, diagnostics);
    return;
  }
  const bool has_description = !recipe.ring.description.empty();
  recipe.ring = {};
  report_unread(kLoaderKeys,
                fmt::format("it has no effect with batches from {}, whose producer determines what "
                            "they contain",
                            recipe.outside),
                schema, diagnostics);
  const auto report_error = [&](const char* key, const std::string& message) {
    diagnostics.error(schema.origin(key), key, message);
  };
  const TrainConfig& config = recipe.config;
  if (config.data.batches_per_epoch == 0)
    report_error("data.batches_per_epoch",
                 fmt::format("missing. {} does not say in advance how many batches an epoch has{}",
                             recipe.outside,
                             has_description ? ", because its description has no `datasets`" : ""));
  if (config.training.on_nonfinite == "restore")
    report_error(
        "training.on_nonfinite",
        fmt::format("expected stop or skip with batches from {}, which cannot be read again, got "
                    "restore",
                    recipe.outside));
  // Training batches have the same outputs as the validation set.
  recipe.train_pipeline = recipe.val_pipeline;
}

std::int64_t outside_samples(const ResolvedRun& run) {
  return run.config().data.batches_per_epoch * run.global_batch_size();
}

std::string outside_identity(const ResolvedRun& run) {
  return fmt::format("{} batches per epoch, from another program",
                     run.config().data.batches_per_epoch);
}

std::unique_ptr<BatchSource> make_outside_train_source(const data::BetonReader& fields,
                                                       const ResolvedRun& run,
                                                       const TrainPlan& plan) {
  data::OutsideSpec spec =
      data::make_outside_spec(fields, run.recipe.train_pipeline, field_choice(run.recipe));
  spec.batches = plan.steps_per_epoch;
  spec.accepts_unnumbered = run.config().checkpoint.resume == "force";
  return open_source(run.recipe.outside, std::move(spec), run, plan);
}

std::unique_ptr<BatchSource> make_outside_stream(const std::string& address, const ResolvedRun& run,
                                                 const TrainPlan& plan) {
  data::OutsideSpec spec = data::make_image_spec(static_cast<int>(plan.model.in_channels));
  spec.batches = std::numeric_limits<std::int64_t>::max();
  spec.checks_positions = false;
  return open_source(address, std::move(spec), run, plan);
}

}  // namespace precast::tools
