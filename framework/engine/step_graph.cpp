#include "framework/engine/step_graph.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/api/torch_message.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/engine/generator_snapshot.h"
#include "framework/engine/out_of_memory.h"

namespace precast::engine {
namespace {

bool same_layout(const at::Tensor& recorded, const at::Tensor& value) {
  return recorded.defined() && recorded.sizes() == value.sizes() &&
         recorded.strides() == value.strides() && recorded.scalar_type() == value.scalar_type();
}

/// Whether both batches have the same fields, with the same shapes, strides and types.
bool fits(const Batch& recorded, const Batch& batch) {
  const auto same = [](const NamedTensor& one, const NamedTensor& other) {
    return one.name == other.name && same_layout(one.tensor, other.tensor);
  };
  return std::ranges::equal(recorded.fields, batch.fields, same) &&
         recorded.inputs == batch.inputs && recorded.targets == batch.targets;
}

/// Returns a batch of uninitialised tensors with the layout of those in `batch`, without sample
/// ids.
Batch empty_like(const Batch& batch, std::optional<at::Device> device = std::nullopt) {
  Batch made{
      .fields = batch.fields, .sample_ids = {}, .inputs = batch.inputs, .targets = batch.targets};
  for (NamedTensor& field : made.fields)
    field.tensor = at::empty_like(
        field.tensor, at::TensorOptions().device(device.value_or(field.tensor.device())));
  return made;
}

}  // namespace

StepGraph::StepGraph(GraphMode mode, std::unique_ptr<GraphRecorder> recorder,
                     std::vector<at::Tensor> parameters, StepGraphOptions options)
    : mode_(mode),
      parameters_(std::move(parameters)),
      options_(options),
      recorder_(std::move(recorder)) {
  require(mode_ != GraphMode::off && recorder_ != nullptr,
          "a step graph has a recorder and a mode other than off");
  require(options_.kept > 0, "a step graph keeps at least one recording");
}

at::Tensor StepGraph::run(const Batch& batch, const Work& work) {
  if (recorder_ == nullptr) return work(batch);
  Shape& shape = shape_of(batch);
  const bool warms_up = shape.recording == nullptr && shape.warm_ups < options_.warm_ups;
  // Work that is not replayed cannot use the memory of recordings, even if no replay is running.
  if (warms_up) drop_recordings();
  copy_inputs(batch, shape);
  if (warms_up) return warm_up(shape, work);
  if (shape.recording == nullptr && !record(shape, work)) return work(batch);
  return replay(shape);
}

bool StepGraph::drop_recordings() {
  if (records_) return false;
  bool any = false;
  for (Shape& shape : shapes_) {
    if (shape.recording == nullptr) continue;
    any = true;
    shape.recording.reset();
    shape = {.layout = std::move(shape.layout), .warm_ups = shape.warm_ups};
  }
  if (!any) return false;
  drop_gradients();
  recorder_->free_unused_memory();
  return true;
}

std::vector<bool> StepGraph::trained_now() const {
  std::vector<bool> trained;
  trained.reserve(parameters_.size());
  for (const at::Tensor& parameter : parameters_) trained.push_back(parameter.requires_grad());
  return trained;
}

/// Returns the entry for the batch's shape and moves it to the front of the list. Creates the entry
/// if it does not exist.
StepGraph::Shape& StepGraph::shape_of(const Batch& batch) {
  if (std::vector<bool> now = trained_now(); trained_ != now) {
    shapes_.clear();
    trained_ = std::move(now);
  }
  const auto found =
      std::ranges::find_if(shapes_, [&](const Shape& shape) { return fits(shape.layout, batch); });
  if (found != shapes_.end()) {
    shapes_.splice(shapes_.begin(), shapes_, found);
    return shapes_.front();
  }
  if (shapes_.size() >= options_.kept) shapes_.pop_back();
  drop_gradients();
  Shape& shape = shapes_.emplace_front();
  shape.layout = empty_like(batch, at::kMeta);
  return shape;
}

void StepGraph::copy_inputs(const Batch& batch, Shape& shape) {
  const at::NoGradGuard no_grad;
  if (shape.batch.fields.empty()) shape.batch = empty_like(batch);
  for (std::size_t i = 0; i < batch.fields.size(); ++i)
    shape.batch.fields[i].tensor.copy_(batch.fields[i].tensor, /*non_blocking=*/true);
}

at::Tensor StepGraph::warm_up(Shape& shape, const Work& work) {
  ++shape.warm_ups;
  at::Tensor loss;
  recorder_->warm_up([&] { loss = work(shape.batch); });
  return loss;
}

/// @return whether the shape has been recorded. If not, `shape` may have been destroyed.
bool StepGraph::record(Shape& shape, const Work& work) {
  drop_gradients();
  const GeneratorSnapshot generator({at::kCPU});
  records_ = true;
  try {
    shape.recording = recorder_->record([&] { shape.loss = work(shape.batch); });
  } catch (const std::exception& failure) {
    // The caller runs the work again for the same step, with the same random numbers.
    records_ = false;
    generator.restore();
    drop_gradients();
    const bool out_of_memory = is_out_of_memory(failure);
    // Ranks record and replay together, so one rank alone cannot continue without a recording.
    if (out_of_memory && options_.several_ranks) throw;
    if (!out_of_memory || !keep_one()) give_up(failure, out_of_memory);
    return false;
  }
  records_ = false;
  for (const at::Tensor& parameter : parameters_) shape.gradients.push_back(parameter.grad());
  return true;
}

bool StepGraph::keep_one() {
  if (!drop_recordings()) return false;
  log_warning(
      "training.cuda_graphs: the recordings of several image sizes do not fit in memory. From now "
      "on, only one recording is kept");
  options_.kept = 1;
  while (shapes_.size() > 1) shapes_.pop_back();
  return true;
}

at::Tensor StepGraph::replay(Shape& shape) {
  shape.recording->replay();
  ++replays_;
  // Since the last replay of this recording, another recording or a method may have set other
  // gradient tensors.
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].mutable_grad() = shape.gradients[i];
  return shape.loss.clone();
}

void StepGraph::give_up(const std::exception& failure, bool out_of_memory) {
  // A lack of memory is not an error, because the rehearsal has shown that the same work fits
  // without a recording.
  if (mode_ != GraphMode::automatic && !out_of_memory) {
    throw DeviceError(fmt::format(
        "training.cuda_graphs: expected a step that a CUDA graph can record, got: {}. Give {}auto "
        "or off, or remove the operation that waits for the device",
        first_line(failure), options_.scope == GraphScope::step ? "on, " : ""));
  }
  log_warning(
      "training.cuda_graphs: a step could not be recorded ({}). Training continues without CUDA "
      "graphs",
      first_line(failure));
  recorder_.reset();
  shapes_.clear();
}

void StepGraph::drop_gradients() {
  for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

}  // namespace precast::engine
