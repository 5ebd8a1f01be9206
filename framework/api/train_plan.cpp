#include "framework/api/train_plan.h"

namespace precast {

double TrainPlan::lr(std::int64_t epoch, std::int64_t step) const {
  const double start = schedule->lr(epoch);
  const double end = schedule->lr(epoch + 1);
  return start + (end - start) / static_cast<double>(steps_per_epoch) * static_cast<double>(step);
}

}  // namespace precast
