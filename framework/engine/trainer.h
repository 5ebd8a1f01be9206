#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/api/batch_source.h"
#include "framework/api/metric_sink.h"
#include "framework/core/export.h"
#include "framework/engine/checkpointer.h"
#include "framework/engine/device_flag.h"
#include "framework/engine/evaluator.h"
#include "framework/engine/train_progress.h"
#include "framework/engine/train_state.h"
#include "framework/engine/train_step.h"
#include "framework/engine/watchdog.h"

namespace precast::engine {

/// What to do when a loss, a weight or, with `skip`, a gradient is NaN or infinite.
enum class NonFinitePolicy {
  /// End the run with ExitCode::diverged.
  stop,
  /// Skip the update of this batch. The run still ends if all updates of an epoch were skipped, or
  /// if a weight or the loss of an evaluation is not finite.
  skip,
  /// Restore the last checkpoint and halve the learning rate, at most three times.
  restore,
};

struct TrainerOptions {
  at::Device device = at::kCPU;
  /// Whether to evaluate after each epoch. There is always an evaluation after the last epoch.
  bool evaluate_each_epoch = true;
  /// Write a record with loss and learning rate every `log_every` steps; 0 means never.
  std::int64_t log_every = 0;
  NonFinitePolicy on_nonfinite = NonFinitePolicy::stop;
  GraphMode graphs = GraphMode::off;
  /// The metric that determines which checkpoint is the best.
  BestMetric best = {};
};

/// The objects that the trainer uses. All are borrowed and must outlive the trainer.
struct TrainerParts {
  Model& model;
  const Loss& loss;
  Optimizer& optimizer;
  const std::vector<NamedMethod>& methods;
  BatchSource& train_source;
  BatchSource& val_source;
  const Evaluator& evaluator;
  Communicator& ranks;
  GradSync& sync;
  /// Only on rank 0; empty on the other ranks.
  std::vector<MetricSink*> sinks;
  /// Null for a run without checkpoints.
  Checkpointer* checkpointer = nullptr;
  Watchdog* watchdog = nullptr;
};

struct TrainSummary {
  /// Empty if the run was stopped before its end.
  std::optional<EvalResult> final_eval;
  double train_seconds = 0;
  double eval_seconds = 0;
  /// The part of the training time that was spent waiting for batches.
  double wait_seconds = 0;
  /// Only meaningful on rank 0: how its training source has spent its time, including the time
  /// before the run was resumed.
  SourceTimes loader_times = {};
  /// Number of images trained on, summed over all ranks.
  std::int64_t images_trained = 0;
  /// The part of images_trained since this process was started.
  std::int64_t process_images = 0;
  /// Mean training loss of the last epoch; NaN if no epoch has finished.
  double train_loss = 0;
  /// Steps that NonFinitePolicy::skip has discarded since the start of the run. In fp16, a step
  /// counts only if the loss of a rank was not finite, because the gradient scaler also discards
  /// steps while it searches for its scale.
  std::int64_t skipped_steps = 0;
  /// Damaged samples that were replaced, on all ranks and since the start of the run. `times` also
  /// counts batches that were loaded but not used before the run was stopped.
  ReplacedSamples replaced = {};
};

/// The training loop. Every rank has one trainer; all trainers run the same steps and make the same
/// decisions. The trainer does not depend on any concrete model, method or dataset.
class PRECAST_API Trainer {
 public:
  Trainer(const TrainPlan& plan, TrainerParts parts, TrainerOptions options);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// Calls the methods' on_run() and on_train_begin(), then restores the newest checkpoint, if the
  /// checkpointer has one. @throws the errors of Checkpointer::attach() and resume()
  void start();
  /// Steps since the start of the run, including those before it was resumed.
  [[nodiscard]] std::int64_t global_step() const { return state_.global_step; }
  /// Finished epochs, including those before the run was resumed.
  [[nodiscard]] std::int64_t epochs_done() const { return state_.epoch; }
  /// Trains until the end of the plan and evaluates. Call start() first. If a rank is asked to stop
  /// (StopSignals), all ranks stop after the same step, before the same pass or in the same
  /// evaluation, and save a checkpoint. When the function returns, a thread may still be writing
  /// the last checkpoint: see Checkpointer::finish(). Flushes the sinks at the end, even if it
  /// throws.
  /// @throws Error with ExitCode::diverged if a loss or a weight is NaN or infinite and
  /// `on_nonfinite` requires it.
  TrainSummary run();
  /// Evaluates the model with the weights that the methods use for evaluation, such as EMA's
  /// averages. @return nothing if the run was asked to stop
  [[nodiscard]] std::optional<EvalResult> evaluate();
  /// Runs `action` while the model has the weights that are evaluated, such as EMA's averages, and
  /// the running statistics of rank 0. If `action` exports the weights, the exported file has the
  /// reported accuracy.
  void in_eval_scope(const std::function<void()>& action);

 private:
  /// What the ranks agree to do after a step.
  enum class Verdict { proceed, stop, diverged };

  void train_and_evaluate();
  [[nodiscard]] Verdict train_epoch();
  void take_step(Batch& batch);
  void count_loss(const at::Tensor& loss);
  [[nodiscard]] Verdict agree_on_verdict();
  [[nodiscard]] Verdict save_checkpoint(const std::optional<EvalResult>& eval = std::nullopt);
  [[nodiscard]] Verdict finish_epoch();
  void restore_after_divergence();
  void stop();
  /// The numbers of finished epochs and steps; used to avoid saving a checkpoint twice at the same
  /// position.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> position() const {
    return {state_.epoch, state_.global_step};
  }
  /// The number of the next step in the plan. Unlike `global_step`, it fits the plan even if the
  /// run was resumed with another number of steps per epoch.
  [[nodiscard]] std::int64_t step_of_plan() const {
    return state_.epoch * plan_.steps_per_epoch + state_.step;
  }
  /// How the training source has spent its time, including the time before the run was resumed.
  [[nodiscard]] SourceTimes loader_times() const;
  /// The samples that were replaced so far. Collective.
  [[nodiscard]] ReplacedSamples replaced() const;
  /// Collective.
  [[nodiscard]] TrainSummary summary() const;
  [[nodiscard]] double mean_over_ranks(const at::Tensor& value) const;
  void write(const nlohmann::ordered_json& record);
  void log_step(const at::Tensor& loss);
  [[nodiscard]] std::optional<double> score(const std::optional<EvalResult>& eval) const;
  void log_epoch(const std::optional<EvalResult>& eval);
  void tick();
  /// The position for messages; epochs count from 1.
  [[nodiscard]] std::string progress_text() const;

  const TrainPlan& plan_;
  TrainerParts parts_;
  TrainerOptions options_;
  TrainStep step_;
  TrainState state_;
  /// The value of images_trained when this process resumed the run.
  std::int64_t images_before_ = 0;
  /// The position of the newest checkpoint. Empty if there is none, or if
  /// restore_after_divergence() has changed values that the checkpoint contains.
  std::optional<std::pair<std::int64_t, std::int64_t>> saved_;
  DeviceFlag nonfinite_;
  std::unique_ptr<Communicator::PendingSum> pending_verdict_;
  std::optional<EvalResult> last_eval_;
  TrainProgress progress_;
};

}  // namespace precast::engine
