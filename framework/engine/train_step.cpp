#include "framework/engine/train_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <fmt/core.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/format.h"

namespace precast::engine {
namespace {

std::vector<at::Tensor> trainable_parameters(const Model& model) {
  std::vector<at::Tensor> trainable;
  for (const NamedTensor& parameter : model.parameters()) {
    if (parameter.tensor.requires_grad()) trainable.push_back(parameter.tensor);
  }
  return trainable;
}

/// The side of the images in px; 1 if the inputs are not images.
std::int64_t side_px(const Batch& batch) {
  return batch.input().dim() == 4 ? batch.input().size(2) : 1;
}

/// @throws Error if `error` is torch::nn's error for a batch norm that has a single value per
/// channel. libtorch has no specific exception for this, only a message. The exception is not a
/// ConfigError, because a grid would then stop all its trials.
void throw_if_single_value(const c10::Error& error, const Batch& batch,
                           std::int64_t micro_batches) {
  const std::string_view text = error.what_without_backtrace();
  if (text.find("Expected more than 1 value per channel when training") == std::string_view::npos)
    return;
  throw Error(fmt::format(
      "training.batch_size: expected more than one value per channel for each batch norm, got {} "
      "of {} px in a forward pass of a rank (training.micro_batches: {}; libtorch: {}). Raise "
      "training.batch_size (the batch of one rank), lower training.micro_batches, or raise "
      "resolution.min_res",
      format_count(static_cast<std::uint64_t>(batch.size()), "sample"), side_px(batch),
      micro_batches, text));
}

/// Returns the loss, or NaN if the update was skipped: gradients can be non-finite even if the loss
/// is finite.
at::Tensor loss_of_update(const at::Tensor& loss, const Optimizer::Scaled& scaled) {
  return at::where(scaled.found_inf > 0, at::full_like(loss, NAN), loss);
}

}  // namespace

TrainStep::TrainStep(const TrainPlan& plan, StepParts parts, at::Device device, bool skip_nonfinite,
                     std::unique_ptr<StepGraph> graph)
    : plan_(plan),
      parts_(parts),
      device_(device),
      skip_nonfinite_(skip_nonfinite),
      trainable_(trainable_parameters(parts.model)),
      graph_(std::move(graph)) {
  if (graph_ && graph_->scope() == GraphScope::step)
    lr_ = at::zeros({}, at::device(device).dtype(at::kFloat));
  if (plan_.precision == Precision::fp16) scaler_.emplace(device);
  if (skip_nonfinite_) statistics_ = statistics_of(parts_.model);
  for (const at::Tensor& statistic : statistics_)
    statistics_before_.push_back(at::empty_like(statistic));
  if (skip_nonfinite_) skipped_steps_ = at::zeros({}, at::device(device).dtype(at::kLong));
  for (const NamedMethod& method : parts_.methods) {
    StepStrategy* strategy = method.method->step_strategy();
    if (strategy == nullptr) continue;
    require(strategy_ == nullptr, "at most one method replaces the step");
    strategy_ = strategy;
  }
}

void TrainStep::set_loss_callback(std::function<void(const at::Tensor& loss)> count) {
  loss_callback_ = std::move(count);
}

at::Tensor TrainStep::run(Batch& batch, double lr) {
  if (!plan_.channels_last) make_inputs_contiguous(batch);
  if (lr_.defined()) lr_.fill_(lr);
  if (!records(GraphScope::step, batch)) return complete_step(batch, lr);
  return graph_->run(batch, [&](const Batch& same) {
    Batch recorded = same;
    return complete_step(recorded, lr);
  });
}

bool TrainStep::records(GraphScope scope, const Batch& batch) const {
  // A rehearsal records nothing, because its gradients are dropped.
  return graph_ && graph_->scope() == scope && !rehearses_ &&
         batch.size() * parts_.ranks.world() == plan_.global_batch_size &&
         worth_recording(graph_->mode(), batch.size(), side_px(batch));
}

at::Tensor TrainStep::complete_step(Batch& batch, double lr) {
  {
    const at::NoGradGuard no_grad;
    if (!statistics_.empty()) at::_foreach_copy_(statistics_before_, statistics_);
  }
  had_last_pass_ = false;
  at::Tensor loss =
      strategy_ != nullptr ? strategy_->run(batch, *this) : forward_backward(batch, /*last=*/true);
  if (!had_last_pass_) throw_wrong_passes("none");
  parts_.sync.finish_backward();
  const std::optional<Optimizer::Scaled> scaled = update(lr);
  if (scaler_) scaler_->update(scaled->found_inf);
  parts_.sync.finish_step();

  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    statistics_[i].copy_(at::where(scaled->found_inf > 0, statistics_before_[i], statistics_[i]));
  }
  if (skip_nonfinite_) count_skipped(loss, scaled->found_inf);
  // In fp16, steps are also skipped while the gradient scaler searches for its scale, so the losses
  // of skipped steps count. If gradients are not finite at any scale, GradScaler::collapsed()
  // reports it.
  const bool uncounted = skip_nonfinite_ && !scaler_;
  if (loss_callback_) loss_callback_(uncounted ? loss_of_update(loss, *scaled) : loss);
  return loss;
}

void TrainStep::count_skipped(const at::Tensor& loss, const at::Tensor& found_inf) {
  at::Tensor skipped = found_inf > 0;
  if (scaler_) {
    // All ranks have the averaged gradients, but only the rank's own loss tells a loss that is not
    // finite from a scale that is too large.
    const at::Tensor bad_losses = at::isfinite(loss).logical_not().to(at::kFloat);
    if (parts_.ranks.world() > 1) parts_.ranks.all_reduce_sum({bad_losses});
    skipped = skipped.logical_and(bad_losses > 0);
  }
  skipped_steps_.add_(skipped);
}

std::int64_t TrainStep::take_skipped_steps() {
  if (!skip_nonfinite_) return 0;
  const auto steps = skipped_steps_.item<std::int64_t>();
  skipped_steps_.zero_();
  return steps;
}

void TrainStep::rehearse(Batch& batch) {
  if (!plan_.channels_last) make_inputs_contiguous(batch);
  // Skips the exchange of gradients, because other ranks might not be running a rehearsal.
  rehearses_ = true;
  const auto end = c10::make_scope_exit([this] {
    rehearses_ = false;
    drop_gradients();
  });
  if (strategy_ != nullptr) {
    strategy_->rehearse(batch, *this);
  } else {
    static_cast<void>(forward_backward(batch, /*last=*/true));
  }
}

at::Tensor TrainStep::forward(const Batch& batch) {
  const at::NoGradGuard no_grad;
  const AutocastScope autocast(device_, plan_.precision);
  return outputs_of(batch);
}

at::Tensor TrainStep::forward_backward(Batch& batch, bool last) {
  if (!rehearses_) {
    if (had_last_pass_) throw_wrong_passes("another call after it");
    had_last_pass_ = last;
  }
  const bool replays = records(GraphScope::passes, batch);
  // Passes that are not replayed cannot use the memory of recordings. With a StepStrategy, such
  // passes alternate with replays, so recording again each time would cost more than it saves.
  if (!replays && strategy_ == nullptr) drop_recordings();
  // Passes are replayed only in runs with a single rank, in which the exchange of gradients does
  // nothing.
  const auto both = [&](const Batch& same) {
    return passes(same, (replays || last) && !rehearses_);
  };
  at::Tensor loss = replays ? graph_->run(batch, both) : both(batch);
  // A rehearsal does not call methods, because their on_run() has not been called yet.
  if (rehearses_) return loss;
  for (const NamedMethod& method : parts_.methods) method.method->on_backward(parts_.model);
  return loss;
}

at::Tensor TrainStep::passes(const Batch& batch, bool sync) {
  drop_gradients();
  const std::int64_t parts = plan_.micro_batches;
  require(batch.size() % parts == 0, "a batch divides into its micro-batches");
  const std::int64_t size = batch.size() / parts;
  at::Tensor sum;
  for (std::int64_t part = 0; part < parts; ++part) {
    at::Tensor loss = parts == 1 ? loss_of(batch) : loss_of(batch.narrow(part * size, size));
    if (parts > 1) loss = loss / static_cast<double>(parts);
    if (sync) parts_.sync.begin_backward(/*last=*/part + 1 == parts);
    (scaler_ ? scaler_->scale(loss) : loss).backward();
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  if (sync) parts_.sync.check_backward();
  return sum;
}

void TrainStep::throw_wrong_passes(const std::string& found) const {
  require(strategy_ != nullptr, "without a StepStrategy, a step has one pass, which is the last");
  std::string name;
  for (const NamedMethod& method : parts_.methods)
    if (method.method->step_strategy() == strategy_) name = method.name;
  throw Error(fmt::format(
      "method {}: expected its StepStrategy to call forward_backward() with last = true once in "
      "each step, as the last call, got {}",
      name, found));
}

at::Tensor TrainStep::loss_of(const Batch& batch) {
  const AutocastScope autocast(device_, plan_.precision);
  return parts_.loss(outputs_of(batch), batch);
}

at::Tensor TrainStep::outputs_of(const Batch& batch) {
  try {
    return parts_.model.forward(batch);
  } catch (const c10::Error& error) {
    throw_if_single_value(error, batch, plan_.micro_batches);
    throw;
  }
}

std::optional<Optimizer::Scaled> TrainStep::update(double lr) {
  std::optional<Optimizer::Scaled> scaled;
  if (try_fused_update(lr, scaled)) return scaled;
  scaled = unscale();
  for (const NamedMethod& method : parts_.methods) method.method->on_gradients(parts_.model);
  if (lr_.defined()) {
    parts_.optimizer.step_with(lr_, scaled);
  } else {
    parts_.optimizer.step(lr, scaled);
  }
  return scaled;
}

bool TrainStep::try_fused_update(double lr, std::optional<Optimizer::Scaled>& scaled) {
  // The norm and the check for non-finite values need all averaged gradients on this rank.
  if (!parts_.sync.gradients_everywhere()) return false;
  double max_norm = Method::kUnbounded;
  for (const NamedMethod& method : parts_.methods) {
    const std::optional<double> bound = method.method->gradient_bound();
    if (!bound) return false;
    if (std::isinf(*bound)) continue;
    if (!std::isinf(max_norm)) return false;
    max_norm = *bound;
  }
  const bool checks = scaler_ || skip_nonfinite_;
  // If gradients are neither checked nor clipped, step() is already a single pass over them.
  if (!checks && std::isinf(max_norm)) return false;
  std::vector<at::Tensor> parameters;
  for (const at::Tensor& parameter : trainable_)
    if (parameter.grad().defined()) parameters.push_back(parameter);
  const at::Tensor found_inf =
      checks ? at::empty({}, at::device(device_).dtype(at::kFloat)) : at::Tensor();
  if (!parts_.optimizer.step_scaled({.parameters = parameters,
                                     .lr = lr,
                                     .lr_tensor = lr_,
                                     .scale = scaler_ ? scaler_->factor() : at::Tensor(),
                                     .max_norm = max_norm,
                                     .found_inf = found_inf})) {
    return false;
  }
  if (checks) scaled = Optimizer::Scaled{found_inf};
  return true;
}

std::optional<Optimizer::Scaled> TrainStep::unscale() {
  if (!scaler_ && !skip_nonfinite_) return std::nullopt;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : trainable_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  at::Tensor found_inf;
  if (scaler_) {
    found_inf = scaler_->unscale(gradients);
  } else {
    found_inf = at::zeros({}, at::device(device_).dtype(at::kFloat));
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf,
                                                   at::ones({}, found_inf.options()));
  }
  // If only rank 0 has the averaged gradients, the other ranks must follow its decision.
  if (!parts_.sync.gradients_everywhere()) parts_.ranks.broadcast({found_inf}, /*root=*/0);
  return Optimizer::Scaled{found_inf};
}

void TrainStep::drop_gradients() {
  for (const at::Tensor& parameter : trainable_) parameter.mutable_grad().reset();
}

}  // namespace precast::engine
