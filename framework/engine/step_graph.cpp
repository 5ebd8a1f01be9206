#include "framework/engine/step_graph.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/engine/out_of_memory.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kSmallBatch = 96;
constexpr std::int64_t kSmallBatchSizePx = 160;

bool same_layout(const at::Tensor& place, const at::Tensor& value) {
  return place.defined() && place.sizes() == value.sizes() && place.strides() == value.strides() &&
         place.scalar_type() == value.scalar_type();
}

/// Only the first line: CUDA's errors are followed by advice on debugging kernels.
std::string reason(const std::exception& failure) {
  const auto* torch = dynamic_cast<const c10::Error*>(&failure);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : failure.what();
  return text.substr(0, text.find('\n'));
}

/// The default CPU generator, as it was when this was made.
class HostGenerator {
 public:
  HostGenerator() : generator_(at::globalContext().defaultGenerator(at::kCPU)) {
    const std::scoped_lock lock(generator_.mutex());
    before_ = generator_.get_state();
  }
  void put_back() {
    const std::scoped_lock lock(generator_.mutex());
    generator_.set_state(before_);
  }

 private:
  at::Generator generator_;
  at::Tensor before_;
};

}  // namespace

bool can_capture(GraphMode mode, const TrainPlan& plan, at::Device device, int world) {
  if (mode == GraphMode::off || !device.is_cuda() || world > 1) return false;
  return mode == GraphMode::on || plan.precision != Precision::fp32;
}

bool worth_capturing(GraphMode mode, std::int64_t samples, std::int64_t size_px) {
  if (mode != GraphMode::automatic) return mode == GraphMode::on;
  return samples * size_px * size_px < kSmallBatch * kSmallBatchSizePx * kSmallBatchSizePx;
}

StepGraph::StepGraph(GraphMode mode, std::unique_ptr<GraphRecorder> recorder,
                     std::vector<at::Tensor> parameters)
    : mode_(mode), parameters_(std::move(parameters)), recorder_(std::move(recorder)) {
  require(mode_ != GraphMode::off && recorder_ != nullptr, "a step graph has something to do");
}

at::Tensor StepGraph::run(const Batch& batch, const Passes& passes) {
  if (recorder_ == nullptr) return passes(batch);
  if (!fits(batch)) start_over(batch);
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < batch.fields.size(); ++i)
      batch_.fields[i].tensor.copy_(batch.fields[i].tensor, /*non_blocking=*/true);
  }
  if (loss_.defined()) return replay();
  if (warm_ups_ < kWarmUps) return warm_up(passes);
  return record(passes) ? replay() : passes(batch);
}

bool StepGraph::fits(const Batch& batch) const {
  const auto same = [](const NamedTensor& place, const NamedTensor& value) {
    return place.name == value.name && same_layout(place.tensor, value.tensor);
  };
  return std::ranges::equal(batch_.fields, batch.fields, same) && batch_.inputs == batch.inputs &&
         batch_.targets == batch.targets && trained_ == trained_now();
}

std::vector<bool> StepGraph::trained_now() const {
  std::vector<bool> trained;
  trained.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) trained.push_back(parameter.requires_grad());
  return trained;
}

void StepGraph::start_over(const Batch& batch) {
  recorder_->drop();
  drop_gradients();
  gradients_.clear();
  loss_.reset();
  warm_ups_ = 0;
  trained_ = trained_now();
  batch_ = {
      .fields = batch.fields, .sample_ids = {}, .inputs = batch.inputs, .targets = batch.targets};
  for (NamedTensor& field : batch_.fields) field.tensor = at::empty_like(field.tensor);
}

at::Tensor StepGraph::warm_up(const Passes& passes) {
  ++warm_ups_;
  at::Tensor loss;
  recorder_->warm_up([&] { loss = passes(batch_); });
  return loss;
}

/// @return whether there is a recording now.
bool StepGraph::record(const Passes& passes) {
  drop_gradients();
  HostGenerator generator;
  try {
    recorder_->record([&] { loss_ = passes(batch_); });
  } catch (const std::exception& failure) {
    // The passes run again for the same step, with the same random numbers.
    generator.put_back();
    drop_gradients();
    loss_.reset();
    if (mode_ == GraphMode::on && is_out_of_memory(failure)) throw;
    give_up(failure);
    return false;
  }
  for (const at::Tensor& parameter : parameters_) gradients_.push_back(parameter.grad());
  return true;
}

at::Tensor StepGraph::replay() {
  recorder_->replay();
  ++replays_;
  // A method may have replaced them after the last step.
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].mutable_grad() = gradients_[i];
  return loss_.clone();
}

void StepGraph::give_up(const std::exception& failure) {
  if (mode_ == GraphMode::on) {
    throw DeviceError(
        fmt::format("training.cuda_graphs: expected a step that a CUDA graph can record, got: {}. "
                    "Give auto or off, or remove the operation that waits for the device",
                    reason(failure)));
  }
  log_warning(
      "training.cuda_graphs: a step could not be recorded ({}). Training continues without CUDA "
      "graphs",
      reason(failure));
  recorder_.reset();
  batch_ = {};
}

void StepGraph::drop_gradients() {
  for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

std::unique_ptr<StepGraph> make_step_graph(GraphMode mode, const TrainPlan& plan, at::Device device,
                                           int world, const Model& model) {
  if (!can_capture(mode, plan, device, world)) return nullptr;
  std::unique_ptr<GraphRecorder> recorder = make_graph_recorder(device);
  if (recorder == nullptr && mode == GraphMode::automatic) return nullptr;
  if (recorder == nullptr) {
    throw DeviceError(
        "training.cuda_graphs: expected a build with CUDA, got one without. Build with "
        "-DPRECAST_CUDA=ON where nvcc is installed, or give --training.cuda_graphs=off");
  }
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : model.parameters()) parameters.push_back(parameter.tensor);
  return std::make_unique<StepGraph>(mode, std::move(recorder), std::move(parameters));
}

}  // namespace precast::engine
