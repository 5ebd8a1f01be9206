#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "framework/api/batch_source.h"
#include "framework/api/metric.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"
#include "framework/core/progress.h"
#include "framework/engine/evaluator.h"
#include "framework/engine/train_state.h"

namespace precast::engine {

/// Shows the progress of a training run: a progress line with position, img/s, time left, loss, lr
/// and share of time spent waiting for data, and a line for each finished epoch. Epochs count
/// from 1.
class PRECAST_API TrainProgress {
 public:
  /// Keeps references to `plan` and `train_source`. @param shown whether this rank shows lines
  /// (only one rank should); if not, due() is always false. @param best the metric by which epochs
  /// are compared.
  TrainProgress(const TrainPlan& plan, const BatchSource& train_source, bool shown,
                BestMetric best = {});

  /// @param state at the beginning of the epoch, or at the step from which an interrupted epoch is
  /// resumed.
  void begin_epoch(const TrainState& state);
  [[nodiscard]] bool due() const { return shown_ && progress_.due(); }
  /// @param steps number of steps done in this epoch.
  void show_step(std::int64_t steps, double lr, double loss);
  void show_evaluation(std::int64_t samples, std::int64_t all_samples);
  void clear() { progress_.clear(); }
  /// Returns a line such as `epoch 2/16 | train loss 1.2345 | val loss 1.1012 | top-1 0.5678 (best)
  /// | 812 img/s | 1:05`, with the number of skipped steps if there are any. Speed and time count
  /// from begin_epoch(); the time includes the evaluation. @param state at the end of the epoch.
  [[nodiscard]] std::string epoch_line(const TrainState& state,
                                       const std::optional<EvalResult>& eval) const;

 private:
  const TrainPlan& plan_;
  const BatchSource& train_source_;
  BestMetric best_;
  Progress progress_;
  bool shown_;
  std::int64_t epoch_ = 0;
  std::int64_t first_step_ = 0;
  /// Totals at begin_epoch().
  std::int64_t first_images_ = 0;
  double first_seconds_ = 0;
  std::chrono::steady_clock::time_point epoch_start_;
  double waited_before_epoch_ = 0;
};

}  // namespace precast::engine
