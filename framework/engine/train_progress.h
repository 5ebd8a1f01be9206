#pragma once

#include <chrono>
#include <cstdint>

#include "framework/api/batch_source.h"
#include "framework/api/train_plan.h"
#include "framework/core/progress.h"

namespace precast::engine {

/// The progress line of a training run: position, img/s, time left, loss, lr, share of time spent
/// waiting for data.
class TrainProgress {
 public:
  /// Borrows both. @param shown false: never due (all ranks but one).
  TrainProgress(const TrainPlan& plan, const BatchSource& train_source, bool shown);

  /// @param first_step steps of the epoch that an earlier run has done.
  void begin_epoch(std::int64_t epoch, std::int64_t first_step);
  [[nodiscard]] bool due() const { return shown_ && progress_.due(); }
  /// @param steps done in this epoch.
  void show_step(std::int64_t steps, double lr, double loss);
  void show_evaluation(std::int64_t samples, std::int64_t all_samples);
  void clear() { progress_.clear(); }

 private:
  const TrainPlan& plan_;
  const BatchSource& train_source_;
  Progress progress_;
  bool shown_;
  std::int64_t epoch_ = 0;
  std::int64_t first_step_ = 0;
  std::chrono::steady_clock::time_point epoch_start_;
  double waited_before_epoch_ = 0;
};

}  // namespace precast::engine
