#include "tools/app/eval_session.h"

#include "framework/core/error.h"
#include "framework/engine/checkpoint_scope.h"
#include "tools/app/model_probe.h"
#include "tools/app/plan.h"
#include "tools/app/session.h"
#include "tools/app/task.h"

namespace precast::tools {
namespace {

constexpr std::int64_t kImageDims = 4;

}  // namespace

void check_weights_given(const TrainConfig& config) {
  if (!config.model.weights.empty()) return;
  throw ConfigError(
      "model.weights: missing. Expected the weights to evaluate, as --model.weights=FILE, or a run "
      "folder in place of the recipe");
}

std::int64_t count_eval_outputs(const Recipe& recipe, const data::BetonReader* reader,
                                bool labels_matter) {
  const TrainConfig& config = recipe.config;
  std::int64_t classes = config.model.num_classes;
  if (classes == 0) classes = classes_of_weights(config.model.weights);
  if (reader != nullptr && (labels_matter || classes == 0))
    return count_outputs(*reader, recipe, recipe.val_pipeline, classes);
  if (classes > 0) return classes;
  throw ConfigError(
      "model.num_classes: missing. The weights do not say how many classes they have; give it as "
      "--model.num_classes=N");
}

EvalModel make_eval_model(const Recipe& recipe, const Registries& registries, std::int64_t classes,
                          const data::BetonReader* labels,
                          const std::filesystem::path& checkpoint) {
  const ResolvedRun run = resolve_run(recipe, RankInfo{});
  TrainPlan plan = make_plan(run, registries, 0, classes);
  auto model = build_model(run, plan, registries, WeightsUse::evaluate, labels);
  std::vector<std::unique_ptr<Method::EvalGuard>> averages;
  if (!checkpoint.empty())
    averages = engine::enter_checkpoint_scope(*model, recipe.methods, checkpoint);
  engine::Evaluator evaluator = make_evaluator(run, plan);
  return {run, std::move(plan), std::move(model), evaluator, std::move(averages)};
}

EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader) {
  const TrainConfig& config = model.run.config();
  const Batch batch = make_batch_maker(&reader, model.run.recipe.val_pipeline, model.run,
                                       model.plan)(2, config.validation.resolution);
  check_output(*model.model, model.plan.model, batch);
  const bool mirrors = mirrors_images(model.run.recipe) && batch.input().dim() == kImageDims;
  return {make_val_source(reader, model.run, model.plan), mirrors ? 2 : 1};
}

}  // namespace precast::tools
