#include "tools/app/train.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/process/stop_signals.h"
#include "tools/app/data_description.h"
#include "tools/app/dataset_check.h"
#include "tools/app/eval.h"
#include "tools/app/eval_session.h"
#include "tools/app/frozen_parameters.h"
#include "tools/app/graph_plan.h"
#include "tools/app/images_on_gpu.h"
#include "tools/app/kernel_choice.h"
#include "tools/app/model_probe.h"
#include "tools/app/outside_loading.h"
#include "tools/app/plan.h"
#include "tools/app/rank_session.h"
#include "tools/app/result_file.h"
#include "tools/app/run_identity.h"
#include "tools/app/session.h"
#include "tools/app/shared_loading.h"
#include "tools/app/task.h"
#include "tools/app/train_run.h"
#include "tools/app/weights_check.h"
#include "tools/cli/command.h"
#include "tools/cli/json_output.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

bool trains(const Recipe& recipe) {
  return !recipe.config.training.eval_only;
}

/// The run that `train` would start. The plan for a GPU can be printed on a machine without a GPU.
ResolvedRun planned_run(const Recipe& recipe, const RankInfo& info) {
  ResolvedRun run = as_requested(recipe);
  if (!run.device.is_cuda()) run.device = prepare_device(recipe.config, RankInfo{}, trains(recipe));
  if (info.source != "single") run.world = info.world;
  if (const int ranks = ranks_to_launch(recipe.config, info, trains(recipe)); ranks > 0)
    run.world = run.local_world = ranks;
  return run;
}

/// Checks whether this host has enough GPUs for the ranks. Without a GPU, the plan is for another
/// machine. @throws DeviceError
void check_gpus_of_host(const Recipe& recipe, const RankInfo& info) {
  const int gpus = usable_gpus();
  if (gpus == 0) return;
  const int ranks = ranks_to_launch(recipe.config, info, trains(recipe));
  check_gpus(ranks > 0 ? gpu_problem(recipe, ranks, gpus, trains(recipe))
                       : gpu_problem(info, recipe.config.training.device, gpus));
}

/// Applies --ring, which an evaluation does not use. @throws ConfigError if another program makes
/// the training batches
void use_ring(const Arguments& options, ResolvedRun& run) {
  const Recipe& recipe = run.recipe;
  if (!options.has("ring") || !trains(recipe)) return;
  if (!recipe.outside.empty())
    recipe.refuse("data.train_dataset",
                  fmt::format("expected files with --ring, got {}", recipe.outside));
  run.ring = options.text("ring");
}

/// Checks the validation set of a training run.
void check_val_dataset(const data::BetonReader& train, const data::BetonReader& val,
                       const ResolvedRun& run, std::int64_t classes) {
  const Recipe& recipe = run.recipe;
  for (const std::string& warning : check_classes(train, val, recipe)) log_warning("{}", warning);
  static_cast<void>(count_outputs(val, recipe, recipe.val_pipeline, classes));
  check_images_on_gpu(val, recipe.val_pipeline, run, {recipe.config.validation.resolution});
}

/// Describes the datasets, the order of the samples and the pipelines.
ordered_json describe_data(const Recipe& recipe, const ordered_json& datasets) {
  const auto& keys = recipe.config.data;
  const ordered_json& values = recipe.resolved;
  ordered_json described = {{"datasets", datasets}};
  ordered_json pipeline = ordered_json::object();
  if (recipe.outside.empty()) {
    described["order"] = {{"name", keys.order},
                          {"subset", keys.subset},
                          {"filter", keys.filter},
                          {"repeats", keys.repeats}};
    pipeline["train"] =
        pipeline_summary(recipe.train_pipeline, values.at("pipeline.train"), /*train=*/true);
  } else {
    described["producer"] = recipe.outside;
  }
  pipeline["val"] =
      pipeline_summary(recipe.val_pipeline, values.at("pipeline.val"), /*train=*/false);
  described["pipeline"] = std::move(pipeline);
  return described;
}

/// Keys without effect, each with the place where it was given.
ordered_json describe_keys(const std::vector<UnreadKey>& unread_keys) {
  auto keys = ordered_json::array();
  for (const UnreadKey& unread : unread_keys) {
    keys.push_back(
        {{"key", unread.key}, {"place", unread.origin.text()}, {"reason", unread.reason}});
  }
  return keys;
}

/// The layers of the run's model that fused kernels can compute. Empty without fused kernels,
/// because a large model takes a second to construct.
models::NormKernels planned_norms(const ResolvedRun& run, const TrainPlan& plan,
                                  const Registries& registries) {
  if (!plan.model.fused_kernels) return {};
  ModelSpec spec = plan.model;
  const auto rank = make_single_rank();
  if (run.config().dist.sync_bn && run.world > 1) spec.batch_norm_ranks = rank.get();
  return models::norm_kernels(*make_model(registries.models, spec));
}

/// The facts that the datasets add to a plan.
struct PlannedData {
  std::int64_t samples = 0;
  std::int64_t classes = 0;
  ordered_json values;
  ordered_json datasets = ordered_json::object();
  /// Null if it was not read.
  std::unique_ptr<data::BetonReader> train = nullptr;
  std::unique_ptr<data::BetonReader> val = nullptr;

  /// The dataset that has the fields of training batches, or of an evaluation; null if no dataset
  /// was read.
  [[nodiscard]] const data::BetonReader* fields() const { return train ? train.get() : val.get(); }
};

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
  // Checks that the ring loads the same batches as this run.
  if (!recipe.ring.name.empty() || !run.ring.empty())
    static_cast<void>(shared_ring(reader, data, run,
                                  make_plan(run, registries, planned.samples, planned.classes)));
  planned.val = open_dataset("data.val_dataset", recipe);
  check_val_dataset(reader, *planned.val, run, planned.classes);
  planned.datasets["val"] = dataset_summary(*planned.val);
}

/// Reads what an evaluation reads: the validation set, and the number of classes of the weights.
void read_eval_data(const Recipe& recipe, PlannedData& planned) {
  planned.val = open_dataset("data.val_dataset", recipe);
  planned.classes = count_eval_outputs(recipe, planned.val.get(), DatasetUse::evaluate);
  planned.datasets["val"] = dataset_summary(*planned.val);
}

/// @param train_samples 0: the number is read from the dataset, if the recipe names one.
PlannedData plan_data(const ResolvedRun& run, const Registries& registries,
                      std::int64_t train_samples) {
  const Recipe& recipe = run.recipe;
  PlannedData planned{.samples = train_samples,
                      .classes = recipe.config.model.num_classes,
                      .values = recipe.resolved};
  if (!trains(recipe)) {
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

/// Runs the checks that need the model: whether the weights fit, whether training.freeze names
/// parameters and, if datasets were read, whether model, loss and metrics fit their fields and
/// whether weights files can store the model.
/// @return the names of the parameters that are not trained
std::vector<std::string> check_model(ResolvedRun run, const TrainPlan& plan,
                                     const Registries& registries, const PlannedData& planned) {
  const bool on_gpu = run.device.is_cuda();
  // The device of the run may exist only on another machine.
  run.device = at::kCPU;
  // A grid starts several dry runs at the same time.
  at::set_num_threads(1);
  const bool trained = trains(run.recipe);
  const TrainConfig& config = run.config();
  std::vector<TrialBatch> trials;
  if (planned.fields() != nullptr)
    trials = trial_batches(run, plan, planned.fields(), planned.val.get());
  const bool tries = std::ranges::any_of(
      trials, [&](const TrialBatch& trial) { return !is_own_classifier(plan.model, trial.batch); });
  std::unique_ptr<Model> model;
  std::vector<std::string> frozen;
  if (tries || !config.model.weights.empty() || !config.training.freeze.empty()) {
    model = build_model(run, plan, registries, trained ? WeightsUse::train : WeightsUse::evaluate,
                        planned.fields());
    frozen = frozen_parameters(*model);
    if (trained) check_state(*model, run.recipe);
  }
  try {
    check_parts(model.get(), plan.model, *registries.losses.make(plan.loss), run.recipe, trials);
  } catch (const c10::NotImplementedError&) {
    if (!on_gpu) throw;  // libtorch may have the operation only for GPUs
  } catch (const std::exception& error) {
    // A part of a plug-in may work only on GPUs.
    if (!on_gpu || run.recipe.resolved.at("plugins").empty()) throw;
    log_warning("a test of the model on the CPU failed; on a GPU, the model may work: {}",
                error.what());
  }
  return frozen;
}

/// Checks the recipe and prints the plan without training. Throws the error with which training
/// would fail before its first step; if there are too few GPUs or samples, after printing the plan.
/// The number of samples comes from `train_samples`, or from the dataset if the recipe names one.
/// Without either, the plan has no steps.
int dry_run(const ResolvedRun& run, const Registries& registries, const RankInfo& info,
            std::int64_t train_samples, const Arguments& options) {
  if (trains(run.recipe))
    static_cast<void>(run_id_of(run.config()));
  else
    check_weights_given(run.config());
  const PlannedData planned = plan_data(run, registries, train_samples);
  const TrainPlan plan = make_plan(run, registries, planned.samples, planned.classes);
  const data::BetonReader* const fields = planned.fields();
  if (fields != nullptr && !trains(run.recipe))
    warn_of_unnamed_labels(run.recipe, *fields, planned.classes);
  if (fields != nullptr && trains(run.recipe))
    check_images_on_gpu(*fields, run.recipe.train_pipeline, run, plan.image_size_px);
  const auto frozen = check_model(run, plan, registries, planned);
  ordered_json described = describe_plan(run, plan, planned.values, options.has("per-step"));
  described.update(describe_data(run.recipe, planned.datasets));
  described["kernels"] = describe_kernels(run, plan, planned_norms(run, plan, registries));
  described["graphs"] = describe_graphs(run, plan, registries);
  described["frozen"] = frozen;
  described["unread_keys"] = describe_keys(run.recipe.unread_keys);  // with --warn-unread
  described["ignored_keys"] = describe_keys(run.recipe.ignored_keys);
  if (const std::string text = kernels_warning(described["kernels"]); !text.empty())
    log_warning("{}", text);
  if (options.has("json")) {
    print_json(described);
  } else {
    print_plan(run, described);
  }
  // Only now, because the plan is useful even if it is for other data or another machine.
  check_gpus_of_host(run.recipe, info);
  const std::string set = fields != nullptr ? fields->path().string() : "the training set";
  const std::string why = why_no_steps(plan, planned.samples, set);
  if (trains(run.recipe) && !why.empty()) throw ConfigError(why);
  return 0;
}

/// Runs this rank, which may be the only one.
int run_rank(const Recipe& recipe, const Registries& registries, const RankInfo& info,
             const Arguments& options, ResultFile& result) {
  // Handled from here on: a signal must not kill the run while the ranks meet, the GPU is prepared
  // or the datasets are loaded.
  const StopSignals signals(StopSignals::kTraining);
  ResolvedRun run = resolve_run(recipe, info);
  use_ring(options, run);
  check_images_have_gpu(run);
  RankSession ranks(recipe.config, info, run.device,
                    [&](int code, const std::string& error) { result.write_failure(code, error); });
  return ranks.run([&] {
    TrainRun training(run, registries, ranks);
    result.add({{"run_folder", training.folder().string()}});
    const int code = training.run(options.has("json"));
    if (code == 0 && info.rank == 0)
      result.add(ordered_json::parse(std::ifstream(training.folder() / "summary.json")));
    return code;
  });
}

/// Rejects options that only a dry run reads.
void check_dry_run_options(const Arguments& options) {
  if (options.has("dry-run")) return;
  for (const char* name : {"train-samples", "per-step"}) {
    if (options.given(name)) {
      throw ConfigError(
          fmt::format("--{0}: expected --dry-run with --{0}, got a training run", name));
    }
  }
}

int train(RecipeArguments& command, const std::vector<std::string>& args, Registries& registries,
          ResultFile& result) {
  const Arguments& options = command.arguments();
  check_dry_run_options(options);
  const Recipe recipe =
      load_recipe(command.config_path(), command.overrides(), registries, RecipeUse::train,
                  options.has("warn-unread") ? UnreadKeys::warning : UnreadKeys::error);
  result.add({{"params", recipe.resolved}});
  const RankInfo info = find_ranks(recipe.config, trains(recipe));
  const auto train_samples = options.get<std::int64_t>("train-samples");
  if (train_samples < 0)
    throw ConfigError(fmt::format("--train-samples: expected at least 0, got {}", train_samples));
  if (options.has("dry-run")) {
    ResolvedRun run = planned_run(recipe, info);
    use_ring(options, run);
    if (trains(recipe)) check_images_have_gpu(run);
    return dry_run(run, registries, info, train_samples, options);
  }
  std::vector<std::string> arguments = {"train"};
  arguments.insert(arguments.end(), args.begin(), args.end());
  if (!trains(recipe)) {
    const int code =
        evaluate_recipe(recipe, registries, arguments, options.has("json"), {}, &result);
    result.take_over();  // has no effect unless this process has started the ranks
    return code;
  }
  check_datasets(recipe.datasets);
  if (const int ranks = ranks_to_launch(recipe.config, info); ranks > 0) {
    if (!recipe.outside.empty()) check_outside_ranks(recipe, recipe.outside, ranks);
    check_gpus(gpu_problem(recipe, ranks, usable_gpus()));
    const int code = launch_ranks(arguments, ranks);
    result.take_over();
    return code;
  }
  if (info.world == 1) {
    for (const std::string& warning : recipe.unread_by_one_rank) log_warning("{}", warning);
  }
  return run_rank(recipe, registries, info, options, result);
}

/// Whether this process is a rank other than rank 0. Only rank 0 writes the result file. Invalid
/// environment variables of a launcher are reported later.
bool is_other_rank() {
  try {
    return find_rank_info(process_environment()).rank != 0;
  } catch (const ConfigError&) {
    return false;
  }
}

RecipeArguments train_command() {
  RecipeArguments command("train",
                          "Trains a model from a recipe. The weights, the log and everything that "
                          "is needed to continue are written to a run folder.");
  Arguments& arguments = command.arguments();
  arguments.options().add_options()("dry-run", kDryRunHelp)(
      "train-samples", po::value<std::int64_t>()->default_value(0),
      "number of training samples to assume, without reading the dataset; with --dry-run")(
      "ring", po::value<std::string>()->value_name("NAME"),
      "ring of `precast serve` from which training batches are taken; batches that the ring does "
      "not have are loaded by this process, with equal results")(
      "per-step", "show the learning rate of every step; with --dry-run --json")(
      "warn-unread",
      "warn about keys that have no effect; without this option they are errors, except "
      "ffcv-imagenet's keys and those that only several ranks read, which only cause warnings")(
      "json", kJsonHelp)(
      "result-json", po::value<std::string>()->value_name("FILE"),
      "write figures, exit code and all keys to a file at the end, even after an error");
  arguments.example("precast train recipe.yaml --training.epochs=16 --data.num_workers=8");
  arguments.example("precast train recipe.yaml --dry-run", "checks the recipe, shows the plan");
  arguments.exit_codes({10, 12, 13, 14, 85});
  return command;
}

/// RecipeArguments::parse(), which also writes an error to the result file.
bool parse_command(RecipeArguments& command, const std::vector<std::string>& args,
                   const Registries& registries) {
  try {
    return command.parse(args, recipe_help(registries));
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    try {
      ResultFile result(is_other_rank() ? "" : find_result_path(args));
      result.write_failure(failure.exit_code, failure.text);
    } catch (const std::exception& error) {
      log_warning("{}", error.what());
    }
    throw;
  }
}

}  // namespace

int run_train(const std::vector<std::string>& args) {
  Registries registries = make_registries();
  RecipeArguments command = train_command();
  if (!parse_command(command, args, registries)) return 0;
  const Arguments& options = command.arguments();
  const bool writes = options.has("result-json") && !is_other_rank();
  ResultFile result(writes ? options.text("result-json") : "");
  return result.write_after([&] { return train(command, args, registries, result); });
}

}  // namespace precast::tools
