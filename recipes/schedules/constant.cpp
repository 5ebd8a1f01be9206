#include "recipes/schedules/constant.h"

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

std::unique_ptr<Schedule> make_constant(const ScheduleOptions& options) {
  return after_warmup("constant", options, [lr = options.lr](double) { return lr; });
}

}  // namespace precast::recipes
