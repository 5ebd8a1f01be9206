#include "tools/app/assembly.h"

#include "tools/app/session.h"
#include "tools/app/task.h"

namespace precast::tools {
namespace {

TrainPlan with_shared_statistics(TrainPlan plan, const TrainConfig& config, Communicator& ranks) {
  if (config.dist.sync_bn && ranks.world() > 1) plan.model.batch_norm_ranks = &ranks;
  return plan;
}

}  // namespace

Assembly::Assembly(const ResolvedRun& run, TrainPlan plan, const Registries& registries,
                   RankSession& ranks, const data::BetonReader* data)
    : run_(run),
      ranks_(ranks),
      plan_(with_shared_statistics(std::move(plan), run.config(), ranks.communicator())),
      model_(build_model(run, plan_, registries, WeightsUse::train, data)),
      weights_spec_(describe_weights(run.recipe, plan_, registries, *model_, data)),
      loss_(registries.losses.make(plan_.loss)),
      sync_(ranks.make_sync(run.config(), trainable_parameters(*model_))),
      optimizer_(registries.optimizers.make(
          plan_.optimizer,
          {ranks.updated_here(run.config(), trainable_parameters(*model_)), plan_.peak_lr})) {
  const BatchMaker batches = make_batch_maker(data, run.recipe.train_pipeline, run, plan_);
  const std::int64_t size_px =
      plan_.image_size_px.empty() ? run.config().validation.resolution : plan_.image_size_px[0];
  check_parts(model_.get(), plan_.model, *loss_, run.recipe, batches(2, size_px));
}

engine::StepParts Assembly::step_parts() {
  return {*model_, *loss_, *optimizer_, run_.recipe.methods, ranks_.communicator(), *sync_};
}

}  // namespace precast::tools
