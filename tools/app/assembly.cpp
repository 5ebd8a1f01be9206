#include "tools/app/assembly.h"

#include "framework/core/log.h"
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
                   RankSession& ranks, const data::BetonReader* data, const data::BetonReader* val)
    : run_(run),
      ranks_(ranks),
      plan_(with_shared_statistics(std::move(plan), run.config(), ranks.communicator())),
      model_(build_model(run, plan_, registries, WeightsUse::train, data)),
      weights_spec_(describe_weights(run.recipe, plan_, registries, *model_, data)),
      loss_(registries.losses.make(plan_.loss)),
      sync_(ranks.make_sync(run.config(), trainable_parameters(*model_))),
      optimizer_(registries.optimizers.make(
          plan_.optimizer,
          {ranks.owned_parameters(run.config(), trainable_parameters(*model_)), plan_.peak_lr})) {
  check_state(*model_, run.recipe);
  check_parts(model_.get(), plan_, *loss_, run.recipe, probe_batches(run, plan_, data, val));
  if (drop_long_class_names(weights_spec_) && ranks.is_rank_zero()) {
    log_warning(
        "the names of the classes are not stored in the weights files and checkpoints of this run, "
        "because they are longer than {} MiB",
        kMaxWeightsSpecBytes >> 20U);
  }
}

engine::StepParts Assembly::step_parts() {
  return {*model_, *loss_, *optimizer_, run_.recipe.methods, ranks_.communicator(), *sync_};
}

}  // namespace precast::tools
