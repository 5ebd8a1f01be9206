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

}  // namespace

StepRig::StepRig(Recipe& recipe, const Registries& registries, RankSession& ranks,
                 at::Device device, std::int64_t classes)
    : recipe_(recipe),
      device_(device),
      parts_(recipe, make_plan(recipe, registries, recipe.config.global_batch_size(), classes),
             registries, ranks, device),
      step_(parts_.plan(), parts_.step_parts(), device,
            recipe.config.training.on_nonfinite == "skip",
            engine::make_step_graph(graph_mode(recipe.config), parts_.plan(), device,
                                    ranks.communicator().world(), parts_.model())) {
  const Communicator& all = ranks.communicator();
  for (NamedMethod& method : recipe_.methods) {
    method.method->on_run({.seed = parts_.plan().seed,
                           .rank = all.rank(),
                           .world = all.world(),
                           .num_classes = parts_.plan().model.num_classes,
                           .epochs = parts_.plan().epochs,
                           .steps_per_epoch = parts_.plan().steps_per_epoch});
    method.method->on_train_begin(parts_.model());
    method.method->on_epoch_begin(0, parts_.model());
  }
  parts_.model().train(true);
}

FakeShape StepRig::fake_shape() const {
  return {.batch_size = recipe_.config.rank_batch_size(),
          .image_size_px = parts_.plan().image_size_px.front(),
          .classes = parts_.plan().model.num_classes,
          .dtype = image_dtype(device_, parts_.plan().precision),
          .channels_last = parts_.plan().channels_last,
          .device = device_};
}

at::Tensor StepRig::step(Batch batch) {
  for (NamedMethod& method : recipe_.methods) method.method->on_batch(batch, steps_taken_);
  at::Tensor loss = step_.run(batch, kLearningRate);
  for (NamedMethod& method : recipe_.methods)
    method.method->on_step_end(parts_.model(), steps_taken_);
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
