#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/schedule.h"

namespace precast::recipes {

struct StepOptions {
  double step_ratio = 0.1;
  std::int64_t step_length = 30;

  void options(Schema& schema);
};

/// The rate is lr * step_ratio^(epoch / step_length), with the exponent rounded down, and 0 from
/// `epochs` on. Because rates are interpolated between epochs, it falls linearly to 0 within the
/// last epoch (ffcv-imagenet's get_step_lr).
[[nodiscard]] std::unique_ptr<Schedule> make_step(const ScheduleInputs& inputs,
                                                  const StepOptions& options);

}  // namespace precast::recipes
