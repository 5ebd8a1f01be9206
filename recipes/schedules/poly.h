#pragma once

#include <memory>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

struct PolyOptions : WarmupOptions {
  double power = 2;

  void options(Schema& schema);
};

/// After the warm-up, the rate falls from lr to 0 as lr * (1 - share)^power, where share is the
/// completed fraction of the remaining steps, like torch's PolynomialLR called once per step. With
/// power 2, this is the schedule of MLPerf's ResNet-50, except that MLPerf's ends at 1e-4.
[[nodiscard]] std::unique_ptr<Schedule> make_poly(const ScheduleInputs& inputs,
                                                  const PolyOptions& options);

}  // namespace precast::recipes
