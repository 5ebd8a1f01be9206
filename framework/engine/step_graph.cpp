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

bool same_layout(const at::Tensor& place, const at::Tensor& value) {
  return place.defined() && place.sizes() == value.sizes() && place.strides() == value.strides() &&
         place.scalar_type() == value.scalar_type();
}

/// Whether both have the same fields, in the same shapes and types.
bool fits(const Batch& place, const Batch& batch) {
  const auto same = [](const NamedTensor& one, const NamedTensor& other) {
    return one.name == other.name && same_layout(one.tensor, other.tensor);
  };
  return std::ranges::equal(place.fields, batch.fields, same) && place.inputs == batch.inputs &&
         place.targets == batch.targets;
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

StepGraph::StepGraph(GraphMode mode, std::unique_ptr<GraphRecorder> recorder,
                     std::vector<at::Tensor> parameters, StepGraphOptions options)
    : mode_(mode),
      parameters_(std::move(parameters)),
      options_(options),
      recorder_(std::move(recorder)) {
  require(mode_ != GraphMode::off && recorder_ != nullptr, "a step graph has something to do");
  require(options_.kept > 0, "a step graph keeps at least one recording");
}

at::Tensor StepGraph::run(const Batch& batch, const Work& work) {
  if (recorder_ == nullptr) return work(batch);
  Shape& shape = shape_of(batch);
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < batch.fields.size(); ++i)
      shape.batch.fields[i].tensor.copy_(batch.fields[i].tensor, /*non_blocking=*/true);
  }
  if (shape.recording != nullptr) return replay(shape);
  if (shape.warm_ups < options_.warm_ups) return warm_up(shape, work);
  return record(shape, work) ? replay(shape) : work(batch);
}

std::vector<bool> StepGraph::trained_now() const {
  std::vector<bool> trained;
  trained.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) trained.push_back(parameter.requires_grad());
  return trained;
}

/// The entry of the batch's shape, as the first one; makes it if there is none.
StepGraph::Shape& StepGraph::shape_of(const Batch& batch) {
  if (std::vector<bool> now = trained_now(); trained_ != now) {
    shapes_.clear();
    trained_ = std::move(now);
  }
  const auto found =
      std::ranges::find_if(shapes_, [&](const Shape& shape) { return fits(shape.batch, batch); });
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front();
  }
  if (shapes_.size() == options_.kept) shapes_.pop_back();
  drop_gradients();
  Shape& shape = shapes_.emplace_front();
  shape.batch = {
      .fields = batch.fields, .sample_ids = {}, .inputs = batch.inputs, .targets = batch.targets};
  for (NamedTensor& field : shape.batch.fields) field.tensor = at::empty_like(field.tensor);
  return shape;
}

at::Tensor StepGraph::warm_up(Shape& shape, const Work& work) {
  ++shape.warm_ups;
  at::Tensor loss;
  recorder_->warm_up([&] { loss = work(shape.batch); });
  return loss;
}

/// @return whether there is a recording now; if not, there are no shapes either.
bool StepGraph::record(Shape& shape, const Work& work) {
  drop_gradients();
  HostGenerator generator;
  try {
    shape.recording = recorder_->record([&] { shape.loss = work(shape.batch); });
  } catch (const std::exception& failure) {
    // The work runs again for the same step, with the same random numbers.
    generator.put_back();
    drop_gradients();
    if (mode_ != GraphMode::automatic && is_out_of_memory(failure)) throw;
    give_up(failure);
    return false;
  }
  for (const at::Tensor& parameter : parameters_) shape.gradients.push_back(parameter.grad());
  return true;
}

at::Tensor StepGraph::replay(Shape& shape) {
  shape.recording->replay();
  ++replays_;
  // They may be another recording's, or a method may have replaced them after the last step.
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].mutable_grad() = shape.gradients[i];
  return shape.loss.clone();
}

void StepGraph::give_up(const std::exception& failure) {
  if (mode_ != GraphMode::automatic) {
    throw DeviceError(fmt::format(
        "training.cuda_graphs: expected a step that a CUDA graph can record, got: {}. Give {}auto "
        "or off, or remove the operation that waits for the device",
        reason(failure), options_.scope == GraphScope::step ? "on, " : ""));
  }
  log_warning(
      "training.cuda_graphs: a step could not be recorded ({}). Training continues without CUDA "
      "graphs",
      reason(failure));
  recorder_.reset();
  shapes_.clear();
}

void StepGraph::drop_gradients() {
  for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

}  // namespace precast::engine
