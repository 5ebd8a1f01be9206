#include "tools/app/eval_session.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "data/torch/batch_source.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/engine/checkpoint_scope.h"
#include "framework/engine/replaced_samples.h"
#include "tools/app/model_probe.h"
#include "tools/app/plan.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/run_identity.h"
#include "tools/app/session.h"
#include "tools/app/task.h"
#include "tools/app/weights_check.h"
#include "tools/report/data_verdict.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kImageDims = 4;

/// The given samples, in the given order.
class ListedOrder final : public data::SampleOrder {
 public:
  explicit ListedOrder(std::vector<std::uint64_t> samples) : samples_(std::move(samples)) {}
  [[nodiscard]] std::uint64_t size() const override { return samples_.size(); }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t /*seed*/,
                                               std::int64_t /*epoch*/) const override {
    return samples_;
  }

 private:
  std::vector<std::uint64_t> samples_;
};

/// @throws CheckpointError unless all labels are classes of the weights.
void check_labels(const data::BetonReader& reader, const Recipe& recipe, std::int64_t classes) {
  const std::int64_t labels = count_outputs(reader, recipe, recipe.val_pipeline, /*given=*/0);
  if (labels <= classes) return;
  throw CheckpointError(fmt::format(
      "{}: expected weights for at least {} classes, because {} has the label {}, got weights for "
      "{}. Set data.val_dataset to a dataset with the classes of the weights",
      recipe.config.model.weights, labels, reader.path().string(), labels - 1, classes));
}

}  // namespace

void check_weights_given(const TrainConfig& config) {
  if (!config.model.weights.empty()) return;
  throw ConfigError(
      "model.weights: missing. Expected the weights to evaluate, as --model.weights=FILE, or a run "
      "folder in place of the recipe");
}

std::int64_t count_eval_outputs(const Recipe& recipe, const data::BetonReader* reader,
                                DatasetUse use) {
  const auto& model = recipe.config.model;
  if (reader != nullptr && use != DatasetUse::name_classes) check_class_count(recipe, *reader);
  const bool given = model.num_classes > 0;
  const std::int64_t classes = given ? model.num_classes : classes_of_weights(model.weights);
  const bool labels = recipe.targets == TargetKind::class_index;
  // A dataset for predictions may have no labels.
  const auto has_targets = [&] {
    return !labels || find_labels(*reader, recipe.val_pipeline, recipe.config);
  };
  if (reader != nullptr && (use == DatasetUse::evaluate || (classes == 0 && has_targets()))) {
    if (labels && !given && classes > 0) check_labels(*reader, recipe, classes);
    return count_outputs(*reader, recipe, recipe.val_pipeline, classes);
  }
  if (classes > 0) return classes;
  throw ConfigError(
      "model.num_classes: missing. The weights file does not contain the number of classes. Set "
      "--model.num_classes=N");
}

EvalModel make_eval_model(const ResolvedRun& run, const Registries& registries, RankSession& ranks,
                          std::int64_t classes, const data::BetonReader* labels,
                          const RunArgument& run_argument) {
  if (ranks.is_rank_zero()) {
    for (const std::string& sentence : run_argument.changed_plugins(run.recipe))
      log_warning("{}", sentence);
  }
  TrainPlan plan = make_plan(run, registries, 0, classes, RecipeUse::evaluate);
  auto model = build_model(run, plan, registries, WeightsUse::evaluate, labels);
  if (run_argument.checkpoint.empty() && ranks.is_rank_zero())
    warn_of_averages(load_weights(run.config().model.weights));
  std::vector<std::unique_ptr<Method::EvalGuard>> averages;
  if (!run_argument.checkpoint.empty())
    averages = engine::enter_checkpoint_scope(*model, run.recipe.methods, run_argument.checkpoint);
  if (ranks.communicator().world() > 1) {
    ordered_json identity = describe_identity(run.recipe.resolved, *model);
    // Paths may differ between hosts; the weights themselves are compared.
    identity.erase("model.weights");
    if (labels != nullptr) identity["dataset.val"] = describe_dataset(*labels);
    check_same_identity(ranks.communicator(), identity);
  }
  engine::Evaluator evaluator = make_evaluator(run, plan);
  return {run, std::move(plan), std::move(model), evaluator, std::move(averages)};
}

int run_evaluation(const Recipe& recipe, const std::vector<std::string>& command,
                   const std::function<int(const ResolvedRun&, RankSession&)>& body, OnEnd on_end) {
  const RankInfo info = resolve_rank_info(recipe.config, /*trains=*/false);
  if (const int ranks = ranks_to_launch(recipe.config, info, /*trains=*/false); ranks > 0) {
    check_gpus(gpu_problem(recipe, ranks, usable_gpus(), /*trains=*/false));
    return launch_ranks(command, ranks);
  }
  const ResolvedRun run = resolve_run(recipe, info, /*trains=*/false);
  RankSession ranks(recipe.config, info, run.device, std::move(on_end));
  return ranks.run([&] {
    const int code = body(run, ranks);
    // No rank leaves before rank 0 has written the results.
    static_cast<void>(ranks.communicator().all_gather("done"));
    ranks.leave();
    return code;
  });
}

std::vector<std::uint64_t> positions_of_rank(std::uint64_t samples, std::int64_t batch_size,
                                             Communicator& ranks) {
  const auto batch = static_cast<std::uint64_t>(batch_size);
  const auto step = batch * static_cast<std::uint64_t>(ranks.world());
  std::vector<std::uint64_t> positions;
  for (std::uint64_t first = batch * static_cast<std::uint64_t>(ranks.rank()); first < samples;
       first += step) {
    for (std::uint64_t i = first; i < std::min(first + batch, samples); ++i) positions.push_back(i);
  }
  return positions;
}

void warn_of_replaced(const BatchSource* source, RankSession& ranks) {
  const std::vector<ReplacedSample> replaced = engine::gather_replaced(
      source == nullptr ? std::vector<ReplacedSample>() : source->replaced(), ranks.communicator());
  if (!ranks.is_rank_zero() || replaced.empty()) return;
  log_warning("{}", fmt::join(describe_replaced(replaced), "\n"));
}

EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader,
                            std::vector<std::uint64_t> positions) {
  if (positions.empty()) return {};
  return open_eval_source(model, reader, DatasetUse::predict,
                          std::make_shared<ListedOrder>(std::move(positions)));
}

EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader, DatasetUse use,
                            std::shared_ptr<const data::SampleOrder> order) {
  const Recipe& recipe = model.run.recipe;
  data::FieldChoice fields = field_choice(recipe);
  data::Pipeline pipeline = recipe.val_pipeline;
  if (use == DatasetUse::predict) {
    fields.targets.clear();
    fields.needs_target = false;
    pipeline = prediction_pipeline(pipeline, recipe.config, reader);
  }
  const at::Device device = model.run.device;
  const at::ScalarType type = image_dtype(device, model.plan.precision);
  const Batch batch = data::make_batch_maker(reader, pipeline, fields, device, type)(
      2, recipe.config.validation.resolution);
  const std::int64_t output_dims = check_output(model.model.get(), model.plan, batch).dim();
  const bool images = batch.input().dim() == kImageDims;
  data::LoaderOptions options = val_loader_options(reader, model.run);
  options.order = std::move(order);
  return {.source = data::make_batch_source(reader, pipeline, options, fields, device, type),
          .passes = mirrors_images(recipe) && images ? 2 : 1,
          .images = images,
          .output_dims = output_dims};
}

}  // namespace precast::tools
