#include "framework/api/train_plan.h"

namespace precast {

double TrainPlan::lr(std::int64_t epoch, std::int64_t step) const {
  return schedule->step_lr(epoch, step, steps_per_epoch);
}

}  // namespace precast
