#pragma once

#include <memory>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

struct PolyOptions : WarmupOptions {
  double power = 2;

  void options(Schema& schema);
};

/// After the warm-up, the rate is lr * (1 - share)^power, which falls to 0, like torch's
/// PolynomialLR called once per step. With power 2, it is the schedule of MLPerf's ResNet-50,
/// except that MLPerf's ends at 1e-4.
[[nodiscard]] std::unique_ptr<Schedule> make_poly(const ScheduleInputs& inputs,
                                                  const PolyOptions& options);

}  // namespace precast::recipes
