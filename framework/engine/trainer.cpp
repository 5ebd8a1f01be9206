#include "framework/engine/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/api/run_facts.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/log.h"
#include "framework/engine/step_clock.h"
#include "framework/engine/stop_request.h"
#include "framework/process/stop_signals.h"

namespace precast::engine {
namespace {

constexpr std::int64_t kMaxRestores = 3;
constexpr double kRestoreLrFactor = 0.5;
/// The ranks sum one number per step: a rank that was asked to stop adds 1, and a rank with a
/// non-finite loss adds this number.
constexpr std::int64_t kDivergedWord = std::int64_t{1} << 32;

StepParts step_parts(const TrainerParts& parts) {
  return {parts.model, parts.loss, parts.optimizer, parts.methods, parts.ranks, parts.sync};
}

}  // namespace

Trainer::Trainer(const TrainPlan& plan, TrainerParts parts, TrainerOptions options)
    : plan_(plan),
      parts_(std::move(parts)),
      options_(std::move(options)),
      step_(plan_, step_parts(parts_), options_.device,
            options_.on_nonfinite == NonFinitePolicy::skip,
            make_step_graph(options_.graphs, plan_, options_.device, step_parts(parts_))),
      nonfinite_(options_.device),
      progress_(plan_, parts_.train_source, parts_.ranks.rank() == 0, options_.best) {
  state_.loss_sum = at::zeros({}, at::device(options_.device).dtype(at::kDouble));
  state_.loss_count = at::zeros_like(state_.loss_sum);
  state_.global_batch_size = plan_.global_batch_size;
  state_.steps_per_epoch = plan_.steps_per_epoch;
  state_.best_metric = options_.best.name;
  step_.set_loss_callback([this](const at::Tensor& loss) { count_loss(loss); });
}

TrainSummary Trainer::run() {
  const auto flush = [this] {
    for (MetricSink* sink : parts_.sinks) sink->flush();
  };
  try {
    train_and_evaluate();
  } catch (...) {
    flush();
    throw;
  }
  flush();
  return summary();
}

void Trainer::train_and_evaluate() {
  while (state_.epoch < plan_.epochs) {
    Verdict verdict = train_epoch();
    if (verdict == Verdict::proceed) verdict = finish_epoch();
    if (verdict == Verdict::stop) return stop();
    if (verdict == Verdict::diverged) restore_after_divergence();
  }
  // The plan has no epochs, or the run was resumed after its end.
  if (!last_eval_) {
    // If the run was resumed after its end, the checkpoint usually contains the time of an
    // evaluation already, so this one is not added.
    const double counted = state_.eval_seconds;
    last_eval_ = evaluate();
    if (counted > 0) state_.eval_seconds = counted;
  }
  if (!last_eval_) stop();
}

void Trainer::stop() {
  state_.add_skipped(step_.take_skipped_steps());
  if (parts_.checkpointer != nullptr) {
    // A second checkpoint of the same position would replace the first one and lose its metric.
    if (saved_ != position() && save_checkpoint() == Verdict::diverged) {
      restore_after_divergence();  // throws, or restores an earlier checkpoint from which the run
                                   // can be resumed
      static_cast<void>(save_checkpoint());  // again, with the lower learning rate
    }
    parts_.checkpointer->finish();
  }
  last_eval_.reset();
}

void Trainer::start() {
  const RunFacts run{.seed = plan_.seed,
                     .rank = parts_.ranks.rank(),
                     .world = parts_.ranks.world(),
                     .num_classes = plan_.model.num_classes,
                     .epochs = plan_.epochs,
                     .steps_per_epoch = plan_.steps_per_epoch,
                     .repeats = plan_.repeats};
  for (const NamedMethod& method : parts_.methods) {
    method.method->on_run(run);
    method.method->on_train_begin(parts_.model);
  }
  if (parts_.checkpointer == nullptr) return;
  parts_.checkpointer->attach(step_.scaler(), parts_.sinks);
  if (!parts_.checkpointer->resume(state_)) return;
  saved_ = position();
  images_before_ = state_.images_trained;
  if (parts_.ranks.rank() == 0)
    log_info("=> resuming after step {} ({})", state_.global_step, progress_text());
}

TrainSummary Trainer::summary() const {
  return {.final_eval = last_eval_,
          .train_seconds = state_.train_seconds,
          .eval_seconds = state_.eval_seconds,
          .wait_seconds = state_.wait_seconds,
          .loader_times = loader_times(),
          .images_trained = state_.images_trained,
          .process_images = state_.images_trained - images_before_,
          .train_loss = state_.train_loss,
          .skipped_steps = state_.skipped_steps,
          .replaced = replaced()};
}

SourceTimes Trainer::loader_times() const {
  const SourceTimes before = state_.loader_times, now = parts_.train_source.times();
  return {.processing = before.processing + now.processing,
          .disk = before.disk + now.disk,
          .blocked = before.blocked + now.blocked,
          .ahead = before.ahead + now.ahead,
          .copying = before.copying + now.copying};
}

ReplacedSamples Trainer::replaced() const {
  return {merge_replaced(state_.replaced.train,
                         gather_replaced(parts_.train_source.replaced(), parts_.ranks)),
          merge_replaced(state_.replaced.val,
                         gather_replaced(parts_.val_source.replaced(), parts_.ranks))};
}

Trainer::Verdict Trainer::train_epoch() {
  StepClock clock(parts_.train_source);
  for (const NamedMethod& method : parts_.methods)
    method.method->on_epoch_begin(state_.epoch, parts_.model);
  parts_.model.train(true);
  progress_.begin_epoch(state_);
  failpoint("trainer.before_pass");
  parts_.train_source.begin_epoch(
      {.epoch = state_.epoch,
       .first_batch = state_.step,
       .image_size_px = plan_.image_size_px.at(static_cast<std::size_t>(state_.epoch)),
       .rank = parts_.ranks.rank(),
       .world = parts_.ranks.world()});

  // A source that was asked to stop while it prepared the pass has no batches, so all ranks stop.
  Verdict verdict = any_rank_requested_stop(parts_.ranks) ? Verdict::stop : Verdict::proceed;
  while (verdict == Verdict::proceed) {
    std::optional<Batch> batch = parts_.train_source.next();
    if (!batch) {
      // With one rank, a request to stop ends the source's wait for a batch, and next() returns
      // nothing.
      if (state_.step >= plan_.steps_per_epoch || !StopSignals::requested()) break;
      clock.count(state_, parts_.train_source);
      return Verdict::stop;
    }
    take_step(*batch);
    clock.count(state_, parts_.train_source);
    verdict = agree_on_verdict();
    const bool within_epoch = state_.step < plan_.steps_per_epoch;
    if (verdict == Verdict::proceed && within_epoch && parts_.checkpointer != nullptr &&
        parts_.checkpointer->due_after_step(state_)) {
      verdict = save_checkpoint();
    }
    tick();
  }
  if (verdict != Verdict::proceed) return verdict;
  require(state_.step == plan_.steps_per_epoch, "an epoch has the plan's number of steps");
  // NaN if every step was skipped.
  state_.train_loss = mean_over_ranks(state_.loss_sum) / mean_over_ranks(state_.loss_count);
  state_.add_skipped(step_.take_skipped_steps());
  // Reading the sums waited for the device to finish the last steps; their time is counted here.
  clock.count(state_, parts_.train_source);
  return std::isfinite(state_.train_loss) ? Verdict::proceed : Verdict::diverged;
}

Trainer::Verdict Trainer::save_checkpoint(const std::optional<EvalResult>& eval) {
  tick();
  // A run is complete only after the evaluation of its last epoch.
  const bool complete = eval && state_.epoch == plan_.epochs;
  state_.add_skipped(step_.take_skipped_steps());
  TrainState saved = state_;
  saved.replaced = replaced();
  saved.loader_times = loader_times();
  if (!parts_.checkpointer->save(saved, score(eval), complete)) return Verdict::diverged;
  saved_ = position();
  return Verdict::proceed;
}

void Trainer::take_step(Batch& batch) {
  state_.lr = plan_.lr(state_.epoch, state_.step) * state_.lr_factor;
  for (const NamedMethod& method : parts_.methods) method.method->on_batch(batch, step_of_plan());
  failpoint("trainer.before_step");
  const at::Tensor loss = step_.run(batch, state_.lr);
  for (const NamedMethod& method : parts_.methods)
    method.method->on_step_end(parts_.model, step_of_plan());
  state_.images_trained += plan_.global_batch_size;
  if (options_.log_every > 0 && state_.global_step % options_.log_every == 0) log_step(loss);
  ++state_.step;
  ++state_.global_step;
  // Reading the loss waits for the device, so it is read only when a line is due.
  if (progress_.due()) progress_.show_step(state_.step, state_.lr, loss.item<double>());
}

void Trainer::count_loss(const at::Tensor& loss) {
  if (step_.scaler() != nullptr) nonfinite_.raise_if(step_.scaler()->collapsed());
  if (options_.on_nonfinite == NonFinitePolicy::skip) {
    const at::Tensor finite = at::isfinite(loss);
    state_.loss_sum.add_(at::where(finite, loss, at::zeros({}, loss.options())));
    state_.loss_count.add_(finite);
    return;
  }
  state_.loss_sum.add_(loss);
  state_.loss_count.add_(1);
  nonfinite_.add(loss);
}

Trainer::Verdict Trainer::agree_on_verdict() {
  const std::int64_t word =
      (StopSignals::requested() ? 1 : 0) + (nonfinite_.poll() ? kDivergedWord : 0);
  // Waits for the sum of the previous step, which has usually arrived, instead of the sum of this
  // step.
  auto before = std::exchange(pending_verdict_, parts_.ranks.begin_sum(word));
  if (!before) return Verdict::proceed;
  const std::int64_t sum = before->wait();
  if (sum >= kDivergedWord) return Verdict::diverged;
  return sum > 0 ? Verdict::stop : Verdict::proceed;
}

void Trainer::restore_after_divergence() {
  const std::int64_t restores = state_.restores + 1;
  const double lr_factor = state_.lr_factor * kRestoreLrFactor;
  const std::int64_t lost_step = state_.global_step, lost_epoch = state_.epoch + 1;
  // These two values describe the time before this process was started. restore() replaces them by
  // values that include samples and times of this process, which would then be counted twice.
  ReplacedSamples replaced_before = state_.replaced;
  const SourceTimes times_before = state_.loader_times;
  std::string why, hint = "Lower lr.lr, or add the method gradient_clipping";
  if (options_.on_nonfinite != NonFinitePolicy::restore) {
    why = ". ";
    hint += ", or see training.on_nonfinite";
  } else if (restores > kMaxRestores) {
    why = fmt::format(" after {} restored checkpoints. ", kMaxRestores);
  } else if (parts_.checkpointer == nullptr || !parts_.checkpointer->restore(state_)) {
    why = ", and there is no checkpoint to restore. ";
  }
  if (!why.empty()) {
    throw Error(fmt::format("training diverged: expected finite losses and weights, got NaN or "
                            "infinity by step {} (epoch {}){}{}",
                            lost_step, lost_epoch, why, hint),
                ExitCode::diverged);
  }
  state_.replaced = std::move(replaced_before);
  state_.loader_times = times_before;
  state_.restores = restores;
  state_.lr_factor = lr_factor;
  saved_.reset();  // the checkpoint contains the earlier values of these two
  nonfinite_.reset();
  pending_verdict_.reset();
  if (parts_.ranks.rank() == 0) {
    log_warning(
        "training.on_nonfinite: a loss or a weight was not finite by step {}; restored step {}, "
        "with the learning rate multiplied by {}",
        lost_step, state_.global_step, lr_factor);
  }
}

Trainer::Verdict Trainer::finish_epoch() {
  const bool last = state_.epoch + 1 == plan_.epochs;
  std::optional<EvalResult> eval;
  if (options_.evaluate_each_epoch || last) {
    eval = evaluate();
    if (!eval) return Verdict::stop;
    if (!std::isfinite(eval->loss)) return Verdict::diverged;
  }
  if (const auto now = score(eval); now && std::isfinite(*now)) {
    const double before = options_.best.higher_is_better ? state_.best_value : -state_.best_value;
    if (state_.best_epoch < 0 || *now > before) {
      state_.best_value = eval->figure(options_.best.name);
      state_.best_epoch = state_.epoch;
    }
  }
  log_epoch(eval);
  if (parts_.ranks.rank() == 0) log_line(progress_.epoch_line(state_, eval));
  last_eval_ = eval;
  state_.begin_next_epoch();
  const bool due =
      parts_.checkpointer != nullptr && parts_.checkpointer->due_after_epoch(state_, last);
  return due ? save_checkpoint(eval) : Verdict::proceed;
}

std::optional<EvalResult> Trainer::evaluate() {
  std::optional<EvalResult> result;
  in_eval_scope([&] {
    // Frees memory for the evaluation, which cannot use the memory of recordings.
    step_.drop_recordings();
    result = parts_.evaluator.evaluate(
        parts_.model, parts_.loss, parts_.val_source, parts_.ranks, [&](std::int64_t samples) {
          if (progress_.due())
            progress_.show_evaluation(samples * parts_.ranks.world(), parts_.val_source.samples());
          tick();
          return agree_on_verdict() != Verdict::stop;
        });
  });
  progress_.clear();
  if (result) state_.eval_seconds += result->seconds;
  return result;
}

void Trainer::in_eval_scope(const std::function<void()>& action) {
  std::vector<std::unique_ptr<Method::EvalGuard>> guards;
  for (const NamedMethod& method : parts_.methods)
    guards.push_back(method.method->eval_scope(parts_.model));
  // During training, each rank has its own running statistics. The evaluation uses rank 0's.
  parts_.ranks.broadcast(statistics_of(parts_.model), /*root=*/0);
  action();
  // Guards are destroyed in reverse order, like nested scopes.
  while (!guards.empty()) guards.pop_back();
}

double Trainer::mean_over_ranks(const at::Tensor& value) const {
  at::Tensor sum = value.to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  parts_.ranks.all_reduce_sum({sum});
  return sum.item<double>() / parts_.ranks.world();
}

void Trainer::write(const nlohmann::ordered_json& record) {
  for (MetricSink* sink : parts_.sinks) sink->write(record);
}

void Trainer::log_step(const at::Tensor& loss) {
  write({{"step", state_.global_step},
         {"epoch", state_.epoch},
         {"epoch_step", state_.step},
         {"resolution", plan_.image_size_px.at(static_cast<std::size_t>(state_.epoch))},
         {"current_lr", state_.lr},
         {"loss", mean_over_ranks(loss)},
         // The current step is not included in the times.
         {"train_time", state_.train_seconds},
         {"wait_time", state_.wait_seconds},
         {"images", state_.images_trained}});
}

/// The value of the best metric, negated if lower is better; nothing without an evaluation.
std::optional<double> Trainer::score(const std::optional<EvalResult>& eval) const {
  if (!eval) return std::nullopt;
  const double value = eval->figure(options_.best.name);
  return options_.best.higher_is_better ? value : -value;
}

void Trainer::log_epoch(const std::optional<EvalResult>& eval) {
  nlohmann::ordered_json record = {{"current_lr", state_.lr}};
  if (eval) {
    if (eval->is_classification)
      record.update({{"top_1", eval->top_1()}, {"top_5", eval->top_5()}});
    record.update({{"val_time", eval->seconds}, {"val_loss", eval->loss}});
    for (const auto& [name, value] : eval->metrics) record[name] = value;
  }
  record.update({{"train_loss", state_.train_loss},
                 {"epoch", state_.epoch},
                 {"resolution", plan_.image_size_px.at(static_cast<std::size_t>(state_.epoch))},
                 {"train_time", state_.train_seconds},
                 {"wait_time", state_.wait_seconds},
                 {"images", state_.images_trained},
                 {"steps", state_.global_step},
                 {"skipped_steps", state_.epoch_skipped_steps}});
  record["loader_time"] = to_json(loader_times());
  write(record);
}

void Trainer::tick() {
  if (parts_.watchdog != nullptr) parts_.watchdog->tick(progress_text());
}

std::string Trainer::progress_text() const {
  if (state_.epoch >= plan_.epochs) return fmt::format("all {} epochs are done", plan_.epochs);
  return fmt::format("epoch {} of {}, step {} of {}", state_.epoch + 1, plan_.epochs, state_.step,
                     plan_.steps_per_epoch);
}

}  // namespace precast::engine
