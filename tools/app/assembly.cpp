#include "tools/app/assembly.h"

#include "tools/app/session.h"

namespace precast::tools {
namespace {

TrainPlan with_shared_statistics(TrainPlan plan, const TrainConfig& config, Communicator& ranks) {
  if (config.dist.sync_bn != 0 && ranks.world() > 1) plan.model.batch_norm_ranks = &ranks;
  return plan;
}

}  // namespace

Assembly::Assembly(Recipe& recipe, TrainPlan plan, const Registries& registries, RankSession& ranks,
                   at::Device device)
    : recipe_(recipe),
      ranks_(ranks),
      plan_(with_shared_statistics(std::move(plan), recipe.config, ranks.communicator())),
      model_(build_model(recipe, plan_, registries, device, engine::OtherHead::keep_drawn)),
      loss_(registries.losses.make(plan_.loss)),
      sync_(ranks.make_sync(recipe.config, trainable_parameters(*model_))),
      optimizer_(registries.optimizers.make(
          plan_.optimizer,
          {ranks.updated_here(recipe.config, trainable_parameters(*model_)), plan_.peak_lr})) {}

engine::StepParts Assembly::step_parts() {
  return {*model_, *loss_, *optimizer_, recipe_.methods, ranks_.communicator(), *sync_};
}

}  // namespace precast::tools
