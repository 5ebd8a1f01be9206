#pragma once

#include <cstdint>
#include <memory>

#include "framework/core/config/part.h"

namespace precast {

/// The learning rate as a function of epoch and step. Rates must be finite and at least 0: before
/// training, precast checks the rate at the start of each epoch and those of its first and last
/// step (exit code 2). Torch-free; all members are const and thread-safe.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The rate at the start of `epoch`, 0 <= epoch <= epochs.
  [[nodiscard]] virtual double lr(std::int64_t epoch) const = 0;
  /// The rate of one step, 0 <= step < steps_per_epoch. By default, it is interpolated linearly
  /// from lr(epoch) to lr(epoch + 1); the last step does not quite reach the latter (numpy.interp
  /// over arange(steps), as in ffcv-imagenet).
  [[nodiscard]] virtual double step_lr(std::int64_t epoch, std::int64_t step,
                                       std::int64_t steps_per_epoch) const {
    const double start = lr(epoch);
    const double end = lr(epoch + 1);
    return start + (end - start) / static_cast<double>(steps_per_epoch) * static_cast<double>(step);
  }
  /// The same schedule over a different number of epochs; a warm-up that is a number of epochs
  /// keeps its length. Null: callers may stretch the whole schedule instead.
  [[nodiscard]] virtual std::unique_ptr<Schedule> with_epochs(std::int64_t /*epochs*/) const {
    return nullptr;
  }
};

/// The inputs that every schedule receives when it is made.
struct ScheduleInputs {
  /// The highest rate, for the global batch; at least 0.
  double lr = 0.5;
  /// At least 1.
  std::int64_t epochs = 30;
};

using ScheduleRegistry = PartRegistry<Schedule, const ScheduleInputs&>;

}  // namespace precast
