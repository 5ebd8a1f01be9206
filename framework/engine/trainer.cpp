#include "framework/engine/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/error.h"

namespace precast::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<at::Tensor> gradients_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
  }
  return gradients;
}

void check_finite(double loss, std::string_view what, std::int64_t epoch) {
  if (std::isfinite(loss)) return;
  throw Error(fmt::format("training diverged: expected a finite {} in epoch {}, got {}. Lower "
                          "lr.lr or add the method "
                          "gradient_clipping",
                          what, epoch, loss),
              ExitCode::diverged);
}

}  // namespace

Trainer::Trainer(const TrainPlan& plan, TrainerParts parts, TrainerOptions options)
    : plan_(plan),
      parts_(std::move(parts)),
      options_(options),
      parameters_(parts_.model.parameters()),
      progress_(plan_, parts_.train_source) {
  if (plan_.precision == Precision::fp16) scaler_.emplace(options_.device);
}

TrainSummary Trainer::run() {
  summary_.wait_seconds = -parts_.train_source.seconds_waited();
  for (std::int64_t epoch = 0; epoch < plan_.epochs; ++epoch) {
    train_epoch(epoch);
    const bool last = epoch + 1 == plan_.epochs;
    std::optional<EvalResult> eval;
    if (options_.evaluate_each_epoch || last) eval = evaluate();
    progress_.clear();
    log_epoch(epoch, eval);
    if (eval) check_finite(eval->loss, "validation loss", epoch);
    if (last) summary_.final_eval = *eval;
  }
  if (plan_.epochs == 0) summary_.final_eval = evaluate();
  summary_.wait_seconds += parts_.train_source.seconds_waited();
  return summary_;
}

EvalResult Trainer::evaluate() {
  EvalResult result;
  in_eval_scope([&] {
    result = parts_.evaluator.evaluate(
        parts_.model, parts_.loss, parts_.val_source, [&](std::int64_t samples) {
          if (progress_.due()) progress_.show_evaluation(samples, parts_.val_source.samples());
        });
  });
  summary_.eval_seconds += result.seconds;
  return result;
}

void Trainer::in_eval_scope(const std::function<void()>& action) {
  std::vector<std::unique_ptr<Method::EvalGuard>> guards;
  for (NamedMethod& method : parts_.methods)
    guards.push_back(method.method->eval_scope(parts_.model));
  action();
  // Guards go in the reverse order of their making, as nested scopes do.
  while (!guards.empty()) guards.pop_back();
}

void Trainer::train_epoch(std::int64_t epoch) {
  const auto start = Clock::now();
  for (NamedMethod& method : parts_.methods) method.method->on_epoch_begin(epoch, parts_.model);
  parts_.model.train(true);
  progress_.begin_epoch(epoch);
  parts_.train_source.begin_epoch(
      {.epoch = epoch, .image_size_px = plan_.image_size_px.at(static_cast<std::size_t>(epoch))});

  at::Tensor loss_sum = at::zeros({}, at::device(options_.device).dtype(at::kDouble));
  std::int64_t steps = 0;
  while (auto batch = parts_.train_source.next()) {
    last_lr_ = plan_.lr(epoch, steps);
    for (NamedMethod& method : parts_.methods) method.method->on_batch(*batch, global_step_);
    const at::Tensor loss = train_step(*batch, last_lr_);
    for (NamedMethod& method : parts_.methods)
      method.method->on_step_end(parts_.model, global_step_);
    loss_sum.add_(loss);
    summary_.images_trained += batch->size();
    if (options_.log_every > 0 && global_step_ % options_.log_every == 0) {
      log_step(epoch, steps, last_lr_, loss);
    }
    ++steps;
    ++global_step_;
    // Reading the loss waits for the device: when a line is due, not each step.
    if (progress_.due()) progress_.show_step(steps, last_lr_, loss.item<double>());
  }
  require(steps == plan_.steps_per_epoch, "an epoch has as many steps as the plan says");

  summary_.train_loss = loss_sum.item<double>() / static_cast<double>(steps);
  summary_.train_seconds += seconds_since(start);
  check_finite(summary_.train_loss, "training loss", epoch);
}

at::Tensor Trainer::train_step(Batch& batch, double lr) {
  parts_.optimizer.zero_grad();
  at::Tensor loss;
  {
    const AutocastScope autocast(options_.device, plan_.precision);
    const at::Tensor images = plan_.channels_last ? batch.images() : batch.images().contiguous();
    loss = parts_.loss(parts_.model.forward(images), batch.labels());
  }
  (scaler_ ? scaler_->scale(loss) : loss).backward();

  std::optional<Optimizer::Scaled> scaled;
  if (scaler_) scaled = Optimizer::Scaled{scaler_->unscale(gradients_of(parameters_))};
  for (NamedMethod& method : parts_.methods) method.method->on_gradients(parts_.model);
  parts_.optimizer.step(lr, scaled);
  if (scaler_) scaler_->update(scaled->found_inf);
  return loss.detach();
}

void Trainer::log_step(std::int64_t epoch, std::int64_t step, double lr, const at::Tensor& loss) {
  const nlohmann::ordered_json record = {
      {"step", global_step_},
      {"epoch", epoch},
      {"epoch_step", step},
      {"resolution", plan_.image_size_px.at(static_cast<std::size_t>(epoch))},
      {"current_lr", lr},
      {"loss", loss.item<double>()}};
  for (MetricSink* sink : parts_.sinks) sink->write(record);
}

void Trainer::log_epoch(std::int64_t epoch, const std::optional<EvalResult>& eval) {
  nlohmann::ordered_json record = {{"current_lr", last_lr_}};
  if (eval) {
    record.update({{"top_1", eval->top_1()},
                   {"top_5", eval->top_5()},
                   {"val_time", eval->seconds},
                   {"val_loss", eval->loss}});
  }
  record.update({{"train_loss", summary_.train_loss},
                 {"epoch", epoch},
                 {"resolution", plan_.image_size_px.at(static_cast<std::size_t>(epoch))},
                 {"train_time", summary_.train_seconds},
                 {"images", summary_.images_trained}});
  for (MetricSink* sink : parts_.sinks) sink->write(record);
}

}  // namespace precast::engine
