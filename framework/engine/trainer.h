#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "framework/api/batch_source.h"
#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/metric_sink.h"
#include "framework/api/model.h"
#include "framework/api/optimizer.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"
#include "framework/engine/evaluator.h"
#include "framework/engine/precision.h"
#include "framework/engine/train_progress.h"

namespace precast::engine {

struct TrainerOptions {
  at::Device device = at::kCPU;
  /// Evaluate after each epoch; the last epoch is always followed by one.
  bool evaluate_each_epoch = true;
  /// Write a record with loss and lr every so many steps; 0: never.
  std::int64_t log_every = 0;
};

/// What the trainer works with. All borrowed; they outlive it.
struct TrainerParts {
  Model& model;
  const Loss& loss;
  Optimizer& optimizer;
  std::vector<NamedMethod>& methods;
  BatchSource& train_source;
  BatchSource& val_source;
  const Evaluator& evaluator;
  std::vector<MetricSink*> sinks;
};

struct TrainSummary {
  EvalResult final_eval;
  double train_seconds = 0;
  double eval_seconds = 0;
  /// Of the training time, how long the model waited for batches.
  double wait_seconds = 0;
  std::int64_t images_trained = 0;
  /// Mean training loss of the last epoch.
  double train_loss = 0;
};

/// The training loop: the order of a step is forward, loss, backward, unscale, on_gradients,
/// optimiser, on_step_end. Knows no concrete model, method or dataset.
class PRECAST_API Trainer {
 public:
  Trainer(const TrainPlan& plan, TrainerParts parts, TrainerOptions options);

  /// Trains through the plan and evaluates.
  /// @throws Error with ExitCode::diverged if the training loss of an epoch is NaN or infinite.
  TrainSummary run();
  /// Evaluates the model as the methods want it evaluated.
  [[nodiscard]] EvalResult evaluate();
  /// Runs `action` while the model holds the weights that are evaluated (those of EMA, say): what
  /// is exported then is what the reported accuracy belongs to.
  void in_eval_scope(const std::function<void()>& action);

 private:
  void train_epoch(std::int64_t epoch);
  /// @return the batch's loss: scalar float32 on the device, detached.
  at::Tensor train_step(Batch& batch, double lr);
  void log_step(std::int64_t epoch, std::int64_t step, double lr, const at::Tensor& loss);
  void log_epoch(std::int64_t epoch, const std::optional<EvalResult>& eval);

  const TrainPlan& plan_;
  TrainerParts parts_;
  TrainerOptions options_;
  std::optional<GradScaler> scaler_;
  std::vector<NamedTensor> parameters_;
  TrainSummary summary_;
  std::int64_t global_step_ = 0;
  double last_lr_ = 0;
  TrainProgress progress_;
};

}  // namespace precast::engine
