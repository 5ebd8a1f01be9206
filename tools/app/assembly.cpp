#include "tools/app/assembly.h"

#include "tools/app/model_probe.h"
#include "tools/app/session.h"

namespace precast::tools {
namespace {

TrainPlan with_shared_statistics(TrainPlan plan, const TrainConfig& config, Communicator& ranks) {
  if (config.dist.sync_bn != 0 && ranks.world() > 1) plan.model.batch_norm_ranks = &ranks;
  return plan;
}

}  // namespace

Assembly::Assembly(Recipe& recipe, TrainPlan plan, const Registries& registries, RankSession& ranks,
                   at::Device device, const data::BetonReader* data)
    : recipe_(recipe),
      ranks_(ranks),
      plan_(with_shared_statistics(std::move(plan), recipe.config, ranks.communicator())),
      model_(build_model(recipe, plan_, registries, device, WeightsUse::train, data)),
      weights_spec_(describe_weights(recipe, plan_, registries, *model_, data)),
      loss_(registries.losses.make(plan_.loss)),
      sync_(ranks.make_sync(recipe.config, trainable_parameters(*model_))),
      optimizer_(registries.optimizers.make(
          plan_.optimizer,
          {ranks.updated_here(recipe.config, trainable_parameters(*model_)), plan_.peak_lr})) {
  const BatchMaker batches = make_batch_maker(data, recipe.train_pipeline, recipe, plan_, device);
  const std::int64_t size_px =
      plan_.image_size_px.empty() ? recipe.config.validation.resolution : plan_.image_size_px[0];
  check_output(*model_, plan_.model, batches(2, size_px));
}

engine::StepParts Assembly::step_parts() {
  return {*model_, *loss_, *optimizer_, recipe_.methods, ranks_.communicator(), *sync_};
}

}  // namespace precast::tools
