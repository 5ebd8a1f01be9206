#include "tools/bench/torch/step_rig.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <filesystem>

#include "framework/api/run_facts.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/app/session.h"
#include "tools/cli/stopwatch.h"
#include "tools/doctor/torch/torch_versions.h"

namespace precast::tools {
namespace {

constexpr double kLearningRate = 0.01;

TrainPlan plan_of(const Recipe& recipe, const Registries& registries, Communicator& ranks,
                  std::int64_t classes) {
  TrainPlan plan = make_plan(recipe, registries, recipe.config.global_batch_size(), classes);
  if (recipe.config.dist.sync_bn != 0 && ranks.world() > 1) plan.model.batch_norm_ranks = &ranks;
  return plan;
}

}  // namespace

StepRig::StepRig(Recipe& recipe, const Registries& registries, RankSession& ranks,
                 at::Device device, std::int64_t classes)
    : recipe_(recipe),
      device_(device),
      plan_(plan_of(recipe, registries, ranks.communicator(), classes)),
      model_(build_model(recipe, plan_, registries, device, engine::OtherHead::keep_drawn)),
      loss_(registries.losses.make(plan_.loss)),
      sync_(ranks.make_sync(recipe.config, trainable_parameters(*model_))),
      optimizer_(registries.optimizers.make(
          plan_.optimizer,
          {ranks.updated_here(recipe.config, trainable_parameters(*model_)), plan_.peak_lr})),
      step_(plan_, {*model_, *loss_, *optimizer_, recipe.methods, ranks.communicator(), *sync_},
            device, recipe.config.training.on_nonfinite == "skip",
            engine::make_step_graph(graph_mode(recipe.config), plan_, device,
                                    ranks.communicator().world(), *model_)) {
  const Communicator& all = ranks.communicator();
  for (NamedMethod& method : recipe_.methods) {
    method.method->on_run({.seed = plan_.seed,
                           .rank = all.rank(),
                           .world = all.world(),
                           .num_classes = plan_.model.num_classes,
                           .epochs = plan_.epochs,
                           .steps_per_epoch = plan_.steps_per_epoch});
    method.method->on_train_begin(*model_);
    method.method->on_epoch_begin(0, *model_);
  }
  model_->train(true);
}

FakeShape StepRig::fake_shape() const {
  return {.batch_size = recipe_.config.rank_batch_size(),
          .image_size_px = plan_.image_size_px.front(),
          .classes = plan_.model.num_classes,
          .dtype = image_dtype(device_, plan_.precision),
          .channels_last = plan_.channels_last,
          .device = device_};
}

at::Tensor StepRig::step(Batch batch) {
  for (NamedMethod& method : recipe_.methods) method.method->on_batch(batch, steps_taken_);
  at::Tensor loss = step_.run(batch, kLearningRate);
  for (NamedMethod& method : recipe_.methods) method.method->on_step_end(*model_, steps_taken_);
  ++steps_taken_;
  return loss;
}

StepWindow time_steps(StepRig& rig, BatchStream& batches, std::int64_t steps, at::Device device) {
  wait_for_device(device);
  const std::int64_t replayed_before = rig.replayed_passes();
  const Stopwatch watch;
  at::Tensor loss;
  for (std::int64_t step = 0; step < steps; ++step) loss = rig.step(batches.next());
  wait_for_device(device);
  return {.seconds = watch.seconds(),
          .cpu_seconds = watch.cpu_seconds(),
          .loss = loss.defined() ? loss.item<double>() : 0,
          .replayed_passes = rig.replayed_passes() - replayed_before};
}

void wait_for_device(at::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

void write_step_trace(StepRig& rig, BatchStream& batches, std::int64_t steps, at::Device device,
                      const std::string& path) {
  using torch::profiler::impl::ActivityType;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO,
                                                     /*report_input_shapes=*/true);
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (device.is_cuda()) activities.insert(ActivityType::CUDA);
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(
      config, activities, {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION});
  for (std::int64_t step = 0; step < steps; ++step) rig.step(batches.next());
  wait_for_device(device);
  torch::autograd::profiler::disableProfiler()->save(path);
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) == 0 || failed)
    throw IoError(fmt::format("{}: expected to write a trace, got nothing written", path));
}

}  // namespace precast::tools
