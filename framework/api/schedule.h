#pragma once

#include <cstdint>
#include <memory>

#include "framework/core/registry.h"

namespace precast {

/// The learning rate over a run. Torch-free; const and thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate at the start of `epoch`, 0 <= epoch <= epochs.
  [[nodiscard]] virtual double lr(std::int64_t epoch) const = 0;
  /// The rate of one step, 0 <= step < steps_per_epoch. Unless a schedule knows better: linear
  /// between lr(epoch) and lr(epoch + 1), the latter never reached (numpy.interp over
  /// arange(steps), as ffcv-imagenet).
  [[nodiscard]] virtual double step_lr(std::int64_t epoch, std::int64_t step,
                                       std::int64_t steps_per_epoch) const {
    const double start = lr(epoch);
    const double end = lr(epoch + 1);
    return start + (end - start) / static_cast<double>(steps_per_epoch) * static_cast<double>(step);
  }
  /// The same shape over another number of epochs, in which a warm-up is as long as before. Null:
  /// this one has none, and is stretched as a whole.
  [[nodiscard]] virtual std::unique_ptr<Schedule> with_epochs(std::int64_t /*epochs*/) const {
    return nullptr;
  }
};

/// The recipe's section `lr` (ffcv-imagenet's names).
struct ScheduleOptions {
  /// The highest rate, for the global batch.
  double lr = 0.5;
  std::int64_t epochs = 30;
  /// cyclic: the epoch of the highest rate.
  std::int64_t lr_peak_epoch = 2;
  /// step: the rate is multiplied by `step_ratio` every `step_length` epochs.
  double step_ratio = 0.1;
  std::int64_t step_length = 30;
  /// cosine, poly, constant: epochs of linear warm-up from 0 to lr.
  std::int64_t warmup_epochs = 0;
  /// cosine: the rate at the end.
  double final_lr = 0;
  /// poly: the exponent of the fall.
  double power = 2;
  /// one_cycle: the share of the run in which the rate rises; the start is lr / div_factor, the end
  /// is the start / final_div_factor.
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
};

using ScheduleRegistry = Registry<Schedule, const ScheduleOptions&>;

}  // namespace precast
