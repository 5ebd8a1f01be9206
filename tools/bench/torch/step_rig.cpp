#include "tools/bench/torch/step_rig.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <filesystem>

#include "framework/api/run_facts.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/system.h"
#include "tools/app/graph_plan.h"
#include "tools/app/images_on_gpu.h"
#include "tools/app/plan.h"
#include "tools/app/session.h"
#include "tools/cli/stopwatch.h"
#include "tools/doctor/torch/torch_versions.h"

namespace precast::tools {
namespace {

constexpr double kLearningRate = 0.01;
/// Large enough that no measurement leaves the start of the first epoch.
constexpr std::int64_t kStepsPerEpoch = 1'000'000'000;

}  // namespace

StepRig::StepRig(const ResolvedRun& run, const Registries& registries, RankSession& ranks,
                 std::int64_t classes)
    : run_(run),
      parts_(run, make_plan(run, registries, run.global_batch_size(), classes), registries, ranks),
      step_(parts_.plan(), parts_.step_parts(), run.device,
            run.config().training.on_nonfinite == "skip",
            engine::make_step_graph(graph_mode(run.config()), parts_.plan(), run.device,
                                    parts_.step_parts())) {
  const Communicator& all = ranks.communicator();
  for (const NamedMethod& method : run_.recipe.methods) {
    method.method->on_run({.seed = parts_.plan().seed,
                           .rank = all.rank(),
                           .world = all.world(),
                           .num_classes = parts_.plan().model.num_classes,
                           .epochs = parts_.plan().epochs,
                           .steps_per_epoch = kStepsPerEpoch,
                           .repeats = parts_.plan().repeats});
    method.method->on_train_begin(parts_.model());
    method.method->on_epoch_begin(0, parts_.model());
  }
  parts_.model().train(true);
}

FakeShape StepRig::fake_shape() const {
  return {.batch_size = run_.rank_batch_size(),
          .image_size_px = parts_.plan().image_size_px.front(),
          .classes = parts_.plan().model.num_classes,
          .channels = parts_.plan().model.in_channels,
          .dtype = image_dtype(run_.device, parts_.plan().precision),
          .channels_last = parts_.plan().channels_last,
          .device = run_.device};
}

at::Tensor StepRig::step(Batch batch) {
  for (const NamedMethod& method : run_.recipe.methods)
    method.method->on_batch(batch, steps_taken_);
  at::Tensor loss = step_.run(batch, kLearningRate);
  for (const NamedMethod& method : run_.recipe.methods)
    method.method->on_step_end(parts_.model(), steps_taken_);
  ++steps_taken_;
  return loss;
}

std::vector<std::string> varying_methods(const std::vector<NamedMethod>& methods) {
  std::vector<std::string> names;
  for (const auto& [name, method] : methods)
    if (method->varies_between_steps()) names.push_back(name);
  return names;
}

void warn_of_varying_steps(const std::vector<NamedMethod>& methods) {
  const std::vector<std::string> names = varying_methods(methods);
  if (names.empty()) return;
  log_warning(
      "methods: {}: the work of a step changes during the run. Only the first steps of a run are "
      "measured",
      fmt::join(names, ", "));
}

std::unique_ptr<BatchSource> make_step_source(const data::BetonReader& reader,
                                              const ResolvedRun& run, const Registries& registries,
                                              const TrainPlan& plan, int world) {
  check_images_have_gpu(run);
  const TrainData data = make_train_data(reader, run, registries);
  auto source = make_train_source(reader, data, run, plan);
  if (source->size(world) == 0) {
    throw ConfigError(
        fmt::format("training.batch_size: expected a global batch of at most {} samples, the "
                    "length of an epoch of {}, got {}",
                    data.order->size(), reader.path().string(), plan.global_batch_size));
  }
  return source;
}

StepWindow time_steps(StepRig& rig, BatchStream& batches, std::int64_t steps, at::Device device) {
  wait_for_device(device);
  rig.restart_count();
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
  rig.restart_count();
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(
      config, activities, {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION});
  for (std::int64_t step = 0; step < steps; ++step) rig.step(batches.next());
  wait_for_device(device);
  torch::autograd::profiler::disableProfiler()->save(path);
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) == 0 || failed)
    throw IoError(
        fmt::format("{}: expected a trace of the profiler, got no file or an empty one", path));
}

}  // namespace precast::tools
