#pragma once

#include <memory>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

struct CosineOptions : WarmupOptions {
  /// The rate at the end.
  double final_lr = 0;

  void options(Schema& schema);
};

/// After the warm-up, the rate follows half a cosine from lr to `final_lr` (Loshchilov & Hutter,
/// ICLR 2017), like torch's CosineAnnealingLR called once per step.
[[nodiscard]] std::unique_ptr<Schedule> make_cosine(const ScheduleInputs& inputs,
                                                    const CosineOptions& options);

}  // namespace precast::recipes
