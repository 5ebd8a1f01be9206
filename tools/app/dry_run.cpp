#include "tools/app/dry_run.h"

#include <ATen/Parallel.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "models/detail/fused_layer_counts.h"
#include "tools/app/data_description.h"
#include "tools/app/dataset_check.h"
#include "tools/app/eval_session.h"
#include "tools/app/frozen_parameters.h"
#include "tools/app/graph_plan.h"
#include "tools/app/images_on_gpu.h"
#include "tools/app/kernel_choice.h"
#include "tools/app/model_probe.h"
#include "tools/app/outside_loading.h"
#include "tools/app/plan.h"
#include "tools/app/rank_session.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/resolved_run.h"
#include "tools/app/run_identity.h"
#include "tools/app/session.h"
#include "tools/app/shared_loading.h"
#include "tools/app/task.h"
#include "tools/app/weights_check.h"
#include "tools/cli/json_output.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// The run that `train` would start. The plan for a GPU can be printed on a machine without a GPU.
ResolvedRun planned_run(const Recipe& recipe, const RankInfo& info) {
  ResolvedRun run = requested_run(recipe);
  if (!run.device.is_cuda())
    run.device = prepare_device(recipe.config, RankInfo{}, recipe.trains());
  if (info.source != "single") run.world = info.world;
  if (const int ranks = ranks_to_launch(recipe.config, info, recipe.trains()); ranks > 0)
    run.world = run.local_world = ranks;
  return run;
}

/// Checks whether this host has enough GPUs for the ranks. A host without GPUs passes, because the
/// plan is then for another machine. @throws DeviceError
void check_gpus_of_host(const Recipe& recipe, const RankInfo& info) {
  const int gpus = usable_gpus();
  if (gpus == 0) return;
  const int ranks = ranks_to_launch(recipe.config, info, recipe.trains());
  check_gpus(ranks > 0 ? gpu_problem(recipe, ranks, gpus, recipe.trains())
                       : gpu_problem(info, recipe.config.training.device, gpus));
}

/// The keys of the recipe that this run does not read, apart from Recipe::unread_keys. They cause
/// no errors, except on the command line of all trials of a grid or of all rows of a table.
std::vector<UnreadKey> ignored_keys(const ResolvedRun& run) {
  const Recipe& recipe = run.recipe;
  std::vector<UnreadKey> keys = recipe.ignored_keys;
  const auto add = [&](const char* key, const std::string& reason) {
    if (recipe.origins.contains(key)) keys.push_back({key, recipe.origin_of(key), reason});
  };
  if (run.world == 1)
    keys.insert(keys.end(), recipe.unread_by_one_rank.begin(), recipe.unread_by_one_rank.end());
  const auto& dist = recipe.config.dist;
  // A world_size equal to that of the run is not reported: commands in the documents set it to 1.
  if (dist.world_size != run.world) {
    if (!recipe.config.training.distributed)
      add("dist.world_size", "it has no effect with training.distributed: false");
    else if (!dist.nproc.empty())
      add("dist.world_size", fmt::format("it has no effect with dist.nproc: {}", dist.nproc));
  }
  if (recipe.config.resolution.min_res == recipe.config.resolution.max_res) {
    for (const char* key : {"resolution.start_ramp", "resolution.end_ramp"})
      add(key, "it has no effect if resolution.min_res equals resolution.max_res");
  }
  return keys;
}

/// Keys without effect, each with the location where it was given.
ordered_json describe_keys(const std::vector<UnreadKey>& unread_keys) {
  auto keys = ordered_json::array();
  for (const UnreadKey& unread : unread_keys) {
    keys.push_back(
        {{"key", unread.key}, {"place", unread.origin.text()}, {"reason", unread.reason}});
  }
  return keys;
}

/// Counts the layers of the run's model that fused kernels can compute. Without fused kernels,
/// returns zeros, because constructing a large model takes a second.
models::FusedLayerCounts count_fused_layers(const ResolvedRun& run, const TrainPlan& plan,
                                            const Registries& registries) {
  if (!plan.model.fused_kernels) return {};
  ModelSpec spec = plan.model;
  const auto rank = make_single_rank();
  if (run.config().dist.sync_bn && run.world > 1) spec.batch_norm_ranks = rank.get();
  return models::fused_layer_counts(*make_model(registries.models, spec));
}

/// The facts about the datasets that the printed plan contains.
struct PlannedData {
  std::int64_t samples = 0;
  std::int64_t classes = 0;
  ordered_json values;
  ordered_json datasets = ordered_json::object();
  /// Null if the dataset was not read.
  std::unique_ptr<data::BetonReader> train = nullptr;
  std::unique_ptr<data::BetonReader> val = nullptr;

  /// The dataset that has the fields of training batches, or of an evaluation; null if no dataset
  /// was read.
  [[nodiscard]] const data::BetonReader* dataset_with_batch_fields() const {
    return train ? train.get() : val.get();
  }
};

/// Describes the datasets, the order of the samples (or their producer) and the pipelines of
/// images.
ordered_json describe_data(const Recipe& recipe, const PlannedData& planned) {
  const auto& keys = recipe.config.data;
  const ordered_json& values = recipe.resolved;
  ordered_json described = {{"datasets", planned.datasets}};
  ordered_json pipeline = ordered_json::object();
  if (recipe.outside.empty()) {
    described["order"] = {{"name", keys.order},
                          {"subset", keys.subset},
                          {"filter", keys.filter},
                          {"repeats", keys.repeats}};
    if (recipe.trains() &&
        has_image_input(recipe.train_pipeline, recipe.config, planned.train.get())) {
      pipeline["train"] =
          pipeline_summary(recipe.train_pipeline, values.at("pipeline.train"), /*train=*/true);
    }
  } else {
    described["producer"] = recipe.outside;
  }
  if (has_image_input(recipe.val_pipeline, recipe.config, planned.val.get())) {
    pipeline["val"] =
        pipeline_summary(recipe.val_pipeline, values.at("pipeline.val"), /*train=*/false);
  }
  described["pipeline"] = std::move(pipeline);
  return described;
}

/// Reads the training set and the validation set.
void read_datasets(const ResolvedRun& run, const Registries& registries, PlannedData& planned) {
  const Recipe& recipe = run.recipe;
  planned.train = open_dataset("data.train_dataset", recipe);
  const data::BetonReader& reader = *planned.train;
  const TrainData data = make_train_order(reader, run, registries);
  planned.samples = static_cast<std::int64_t>(data.order->size());
  planned.values = resolved_values(recipe, reader, data);
  planned.classes = count_outputs(reader, recipe, recipe.train_pipeline, planned.classes);
  planned.datasets["train"] = dataset_summary(reader);
  // shared_ring() compares the batches of the ring with those of this run.
  if (!recipe.ring.name.empty() || !run.ring.empty())
    static_cast<void>(shared_ring(reader, data, run,
                                  make_plan(run, registries, planned.samples, planned.classes)));
  planned.val = open_dataset("data.val_dataset", recipe);
  check_val_dataset(reader, *planned.val, run, planned.classes, /*warns=*/true);
  planned.datasets["val"] = dataset_summary(*planned.val);
}

/// Reads what an evaluation reads: the validation set, and the number of classes of the weights.
void read_eval_data(const Recipe& recipe, PlannedData& planned) {
  planned.val = open_dataset("data.val_dataset", recipe);
  planned.classes = count_eval_outputs(recipe, planned.val.get(), DatasetUse::evaluate);
  planned.datasets["val"] = dataset_summary(*planned.val);
}

/// @param train_samples the number of training samples, without data.repeats; 0: the number in the
/// dataset or from the producer, if the recipe names one.
PlannedData plan_data(const ResolvedRun& run, const Registries& registries,
                      std::int64_t train_samples) {
  const Recipe& recipe = run.recipe;
  PlannedData planned{.samples = train_samples * recipe.config.data.repeats,
                      .classes = recipe.config.model.num_classes,
                      .values = recipe.resolved};
  if (!recipe.trains()) {
    if (train_samples == 0) read_eval_data(recipe, planned);
  } else if (!recipe.outside.empty()) {
    check_datasets(recipe.datasets);
    check_outside_ranks(recipe, recipe.outside, run.world);
    planned.val = open_dataset("data.val_dataset", recipe);
    planned.samples = outside_samples(run);
    planned.classes = count_outputs(*planned.val, recipe, recipe.val_pipeline, planned.classes);
    planned.datasets["val"] = dataset_summary(*planned.val);
  } else if (train_samples == 0 && !recipe.config.data.train_dataset.empty()) {
    check_datasets(recipe.datasets);
    read_datasets(run, registries, planned);
  }
  if (planned.classes == 0) planned.classes = ModelSpec{}.num_classes;
  return planned;
}

/// Replaces fp16 and bf16 with fp32, in a plan for a GPU and in its batches, because libtorch's CPU
/// operations may not support them.
void use_fp32(TrainPlan& plan, std::vector<ProbeBatch>& trials) {
  if (plan.precision == Precision::fp32) return;
  plan.precision = Precision::fp32;
  for (ProbeBatch& trial : trials) {
    for (std::size_t i = 0; i < trial.batch.inputs.size(); ++i) {
      at::Tensor& input = trial.batch.input(i);
      if (c10::isReducedFloatingType(input.scalar_type())) input = input.to(at::kFloat);
    }
  }
}

/// Runs the checks that need the model: whether the weights fit, whether training.freeze names
/// parameters, whether weights files can store the model and, if datasets were read, whether model,
/// loss and metrics fit their fields.
/// @return the names of the parameters that are not trained
std::vector<std::string> check_model(ResolvedRun run, TrainPlan plan, const Registries& registries,
                                     const PlannedData& planned) {
  const bool on_gpu = run.device.is_cuda();
  // The device of the run may exist only on another machine.
  run.device = at::kCPU;
  // A grid starts several dry runs at the same time.
  at::set_num_threads(1);
  const bool trained = run.recipe.trains();
  const TrainConfig& config = run.config();
  std::vector<ProbeBatch> trials;
  if (planned.dataset_with_batch_fields() != nullptr)
    trials = probe_batches(run, plan, planned.dataset_with_batch_fields(), planned.val.get());
  if (on_gpu) use_fp32(plan, trials);
  const bool probes_model = std::ranges::any_of(
      trials, [&](const ProbeBatch& trial) { return !is_own_classifier(plan.model, trial.batch); });
  std::unique_ptr<Model> model;
  std::vector<std::string> frozen;
  if (probes_model || !config.model.weights.empty() || !config.training.freeze.empty()) {
    model = build_model(run, plan, registries, trained ? WeightsUse::train : WeightsUse::evaluate,
                        planned.dataset_with_batch_fields());
    frozen = frozen_parameters(*model);
    if (trained) check_state(*model, run.recipe);
  }
  try {
    check_parts(model.get(), plan, *registries.losses.make(plan.loss), run.recipe, trials);
  } catch (const c10::NotImplementedError&) {
    if (!on_gpu) throw;  // libtorch may have the operation only for GPUs
  } catch (const std::exception& error) {
    // A part of a plug-in may work only on GPUs.
    if (!on_gpu || run.recipe.resolved.at("plugins").empty()) throw;
    log_warning("the model may work on a GPU, but a test of it on the CPU failed: {}",
                error.what());
  }
  return frozen;
}

}  // namespace

int dry_run(const Recipe& recipe, const Registries& registries, const RankInfo& info,
            std::int64_t train_samples, const Arguments& options) {
  ResolvedRun run = planned_run(recipe, info);
  if (options.has("ring")) use_ring(options.text("ring"), run);
  if (recipe.trains()) {
    check_images_have_gpu(run);
    static_cast<void>(run_id_of(run.config()));
  } else {
    check_weights_given(run.config());
  }
  const PlannedData planned = plan_data(run, registries, train_samples);
  const TrainPlan plan = make_plan(run, registries, planned.samples, planned.classes);
  const data::BetonReader* const fields = planned.dataset_with_batch_fields();
  if (fields != nullptr && !recipe.trains())
    warn_of_unnamed_labels(recipe, *fields, planned.classes);
  if (fields != nullptr && recipe.trains())
    check_images_on_gpu(*fields, recipe.train_pipeline, run, plan.image_size_px);
  const auto frozen = check_model(run, plan, registries, planned);
  ordered_json described = describe_plan(run, plan, planned.values, options.has("per-step"));
  described.update(describe_data(recipe, planned));
  described["kernels"] = describe_kernels(run, plan, count_fused_layers(run, plan, registries));
  described["graphs"] = describe_graphs(run, plan, registries);
  described["frozen"] = frozen;
  described["unread_keys"] = describe_keys(recipe.unread_keys);  // with --warn-unread
  described["ignored_keys"] = describe_keys(ignored_keys(run));
  if (const std::string text = kernels_warning(described["kernels"]); !text.empty())
    log_warning("{}", text);
  for (const std::string& warning : part_kernels_warnings(run)) log_warning("{}", warning);
  if (options.has("json"))
    print_json(described);
  else
    recipe.trains() ? print_plan(run, described) : print_evaluation(run, described);
  // Checked after printing, because the plan is useful even if this machine has too few GPUs or the
  // dataset too few samples.
  check_gpus_of_host(recipe, info);
  const std::string set = fields != nullptr ? fields->path().string() : "the training set";
  const std::string reason = no_steps_reason(plan, planned.samples, set);
  if (recipe.trains() && !reason.empty()) throw ConfigError(reason);
  return 0;
}

}  // namespace precast::tools
