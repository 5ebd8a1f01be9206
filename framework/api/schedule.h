#pragma once

#include <cstdint>

#include "framework/core/registry.h"

namespace precast {

/// The learning rate over epochs. Torch-free; const and thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate at the start of `epoch`, 0 <= epoch <= epochs. Steps between two epochs are
  /// interpolated linearly by TrainPlan::lr.
  [[nodiscard]] virtual double lr(std::int64_t epoch) const = 0;
};

/// The recipe's section `lr` (ffcv-imagenet's names).
struct ScheduleOptions {
  double lr = 0.5;
  std::int64_t epochs = 30;
  /// cyclic: the epoch of the highest rate.
  std::int64_t lr_peak_epoch = 2;
  /// step: the rate is multiplied by `step_ratio` every `step_length` epochs.
  double step_ratio = 0.1;
  std::int64_t step_length = 30;
  /// cosine, poly: epochs of linear warm-up from 0 (cosine, poly) to lr.
  std::int64_t warmup_epochs = 0;
  /// cosine: the rate at the end.
  double final_lr = 0;
  /// poly: the exponent of the fall.
  double power = 2;
  /// one_cycle: the share of the run in which the rate rises; the start is lr / div_factor, the end
  /// the start / final_div_factor.
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
};

using ScheduleRegistry = Registry<Schedule, const ScheduleOptions&>;

}  // namespace precast
