#pragma once

#include <cstdint>
#include <memory>

#include "framework/core/config/part.h"

namespace precast {

/// The learning rate as a function of epoch and step. Rates must be finite and at least 0: before
/// training, precast checks lr() of each epoch and the rates of the epoch's first and last step
/// (exit code 2). Torch-free; all members are const and thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate at the start of `epoch`, 0 <= epoch <= epochs.
  [[nodiscard]] virtual double lr(std::int64_t epoch) const = 0;
  /// The rate of one step, 0 <= step < steps_per_epoch. By default, it is interpolated linearly
  /// from lr(epoch) to lr(epoch + 1), which only the first step of the next epoch reaches
  /// (numpy.interp over arange(steps), as in ffcv-imagenet).
  [[nodiscard]] virtual double step_lr(std::int64_t epoch, std::int64_t step,
                                       std::int64_t steps_per_epoch) const {
    const double start = lr(epoch);
    const double end = lr(epoch + 1);
    return start + (end - start) / static_cast<double>(steps_per_epoch) * static_cast<double>(step);
  }
  /// The same schedule over a different number of epochs; a warm-up whose length is given in epochs
  /// keeps this length. Null if not implemented; callers may then stretch the whole schedule.
  [[nodiscard]] virtual std::unique_ptr<Schedule> with_epochs(std::int64_t /*epochs*/) const {
    return nullptr;
  }
};

/// The inputs from which every schedule is created.
struct ScheduleInputs {
  /// The highest rate, for the global batch; at least 0.
  double lr = 0.5;
  /// At least 1.
  std::int64_t epochs = 30;
};

using ScheduleRegistry = PartRegistry<Schedule, const ScheduleInputs&>;

}  // namespace precast
