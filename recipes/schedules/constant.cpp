#include "recipes/schedules/constant.h"

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

std::unique_ptr<Schedule> make_constant(const ScheduleInputs& inputs,
                                        const WarmupOptions& options) {
  return after_warmup(inputs, options, [lr = inputs.lr](double) { return lr; });
}

}  // namespace precast::recipes
