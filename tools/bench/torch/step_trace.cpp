#include "tools/bench/torch/step_trace.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

TracedTensor describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return {.defined = false};
  TracedTensor traced{.element_bytes = static_cast<int>(tensor.element_size()),
                      .is_float = tensor.is_floating_point(),
                      .needs_gradient = tensor.requires_grad()};
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    traced.sizes.push_back(tensor.stride(d) == 0 ? 1 : tensor.size(d));
  return traced;
}

void append(const c10::IValue& value, std::vector<TracedTensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(describe(value.toTensor()));
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorList()) tensors.push_back(describe(tensor));
  } else if (value.isNone()) {
    tensors.push_back({.defined = false});
  }
}

/// Records the ops that the thread runs while this object exists. Only one may exist at a time.
class OpRecorder {
 public:
  OpRecorder() {
    active_ = this;
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&OpRecorder::on_start, &OpRecorder::on_end)
            .needsInputs(true)
            .needsOutputs(true));
  }
  OpRecorder(const OpRecorder&) = delete;
  OpRecorder& operator=(const OpRecorder&) = delete;
  ~OpRecorder() {
    at::removeCallback(handle_);
    active_ = nullptr;
  }

  StepTrace take() { return std::move(trace_); }

 private:
  struct Frame {
    std::string name;
    TracedOp op{};
    bool is_op = false;
    bool counted = false;
    bool backward = false;
    /// Whether a counted op called this one, so that its work is already counted.
    bool inside = false;
    /// Whether it called other ops, which did the work.
    bool delegates = false;
    bool view = false;
  };

  static std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& call) {
    if (active_ != nullptr) active_->start(call);
    return nullptr;
  }
  static void on_end(const at::RecordFunction& call, at::ObserverContext* /*unused*/) {
    if (active_ != nullptr) active_->end(call);
  }

  void start(const at::RecordFunction& call) {
    Frame frame{.name = call.name()};
    if (!frames_.empty()) {
      frame.inside = frames_.back().inside || frames_.back().counted;
      frame.backward = frames_.back().backward;
    }
    // Within this function, autograd also adds up the gradients of a tensor that is read twice.
    frame.backward |= frame.name.starts_with("autograd::engine::evaluate_function");
    const std::size_t colons = frame.name.find("::");
    frame.is_op = call.operator_name().has_value() && colons != std::string::npos;
    if (frame.is_op && !frame.inside) begin_op(call, frame, frame.name.substr(colons + 2));
    frames_.push_back(std::move(frame));
  }

  static void begin_op(const at::RecordFunction& call, Frame& frame, std::string name) {
    const OpKind kind = find_rule(name).kind;
    frame.view = kind == OpKind::view || is_view(call);
    frame.counted = kind != OpKind::composite && kind != OpKind::view;
    if (!frame.counted) return;
    frame.op.name = std::move(name);
    frame.op.phase = kind == OpKind::optimizer ? StepPhase::update
                     : frame.backward          ? StepPhase::backward
                                               : StepPhase::forward;
    for (const c10::IValue& input : call.inputs()) {
      append(input, frame.op.inputs);
      // A convolution and its backward pass have only one argument that is a single bool:
      // `transposed`.
      if (kind == OpKind::convolution && input.isBool()) frame.op.transposed = input.toBool();
      if (!input.isIntList()) continue;
      for (const std::int64_t integer : input.toIntVector()) frame.op.integers.push_back(integer);
    }
    // An op without results: records the arguments that it changes. on_end() cannot read arguments.
    if (const auto schema = schema_of(call); schema && schema->returns().empty()) {
      for (std::size_t i = 0; i < call.inputs().size() && i < schema->arguments().size(); ++i) {
        const auto* alias = schema->arguments()[i].alias_info();
        if (alias != nullptr && alias->isWrite()) append(call.inputs()[i], frame.op.outputs);
      }
    }
  }

  void end(const at::RecordFunction& call) {
    if (frames_.empty()) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    if (frame.counted && !frame.inside) {
      for (const c10::IValue& output : call.outputs()) append(output, frame.op.outputs);
      trace_.ops.push_back(std::move(frame.op));
    }
    const bool does_work = frame.is_op && !frame.inside && !frame.view;
    if (does_work && !frame.counted && !frame.delegates) ++trace_.uncounted[frame.name];
    if (!frames_.empty()) frames_.back().delegates |= does_work || frame.delegates;
  }

  static std::optional<c10::FunctionSchema> schema_of(const at::RecordFunction& call) {
    const auto op = c10::Dispatcher::singleton().findSchema(*call.operator_name());
    if (!op) return std::nullopt;
    return op->schema();
  }

  /// Whether the result shares the memory of an argument that the op does not change.
  static bool is_view(const at::RecordFunction& call) {
    const auto schema = schema_of(call);
    if (!schema || schema->returns().empty()) return false;
    const auto* alias = schema->returns()[0].alias_info();
    return alias != nullptr && !alias->isWrite();
  }

  static thread_local OpRecorder* active_;
  at::CallbackHandle handle_ = 0;
  std::vector<Frame> frames_;
  StepTrace trace_;
};

thread_local OpRecorder* OpRecorder::active_ = nullptr;

StepTrace record(const std::function<void(std::int64_t)>& step, std::int64_t samples) {
  OpRecorder recorder;
  step(samples);
  return recorder.take();
}

/// Changes the sizes in `small` from those for 2 * unit samples to those for `batch_size` samples.
/// @param large the sizes for 3 * unit samples
void extend(std::vector<TracedTensor>& small, const std::vector<TracedTensor>& large,
            std::int64_t unit, std::int64_t batch_size) {
  for (std::size_t i = 0; i < small.size(); ++i) {
    for (std::size_t d = 0; d < small[i].sizes.size(); ++d) {
      const std::int64_t growth = large[i].sizes[d] - small[i].sizes[d];
      if (growth == 0) continue;
      small[i].per_sample = true;
      small[i].sizes[d] += growth * (batch_size - 2 * unit) / unit;
    }
  }
}

bool same_shape(const std::vector<TracedTensor>& a, const std::vector<TracedTensor>& b) {
  return std::ranges::equal(a, b, [](const TracedTensor& x, const TracedTensor& y) {
    return x.sizes.size() == y.sizes.size() && x.defined == y.defined;
  });
}

bool same_op(const TracedOp& a, const TracedOp& b) {
  return a.name == b.name && same_shape(a.inputs, b.inputs) && same_shape(a.outputs, b.outputs);
}

/// An op and the sizes of its inputs: "relu of [[2, 64]]".
std::string op_text(const std::vector<TracedOp>& ops, std::size_t at) {
  if (at >= ops.size()) return "no op";
  std::vector<std::vector<std::int64_t>> sizes;
  for (const TracedTensor& input : ops[at].inputs) sizes.push_back(input.sizes);
  return fmt::format("{} of {}", ops[at].name, sizes);
}

/// @throws ConfigError naming the first op that differs
void check_same_ops(const std::vector<TracedOp>& one, const std::vector<TracedOp>& other) {
  const auto end = std::ranges::mismatch(one, other, same_op);
  if (end.in1 == one.end() && end.in2 == other.end()) return;
  const auto at = static_cast<std::size_t>(end.in1 - one.begin());
  throw ConfigError(
      fmt::format("--model-cost: expected the same ops in every step, got {} ops in one and {} in "
                  "another; op {} is {} in one and {} in the other. Leave out the methods and "
                  "model.params that change steps at random",
                  one.size(), other.size(), at + 1, op_text(one, at), op_text(other, at)));
}

}  // namespace

StepTrace trace_step(const std::function<void(std::int64_t)>& step, std::int64_t unit,
                     std::int64_t batch_size) {
  // The first step also creates the optimiser's state and is not recorded.
  step(2 * unit);
  StepTrace small = record(step, 2 * unit);
  const StepTrace large = record(step, 3 * unit);
  check_same_ops(small.ops, large.ops);
  for (std::size_t i = 0; i < small.ops.size(); ++i) {
    extend(small.ops[i].inputs, large.ops[i].inputs, unit, batch_size);
    extend(small.ops[i].outputs, large.ops[i].outputs, unit, batch_size);
  }
  return small;
}

}  // namespace precast::tools
