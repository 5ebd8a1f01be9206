#include "recipes/schedules/cosine.h"

#include <cmath>
#include <numbers>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

void CosineOptions::options(Schema& schema) {
  WarmupOptions::options(schema);
  schema.add("final_lr", &final_lr, "learning rate at the end").min(0);
}

std::unique_ptr<Schedule> make_cosine(const ScheduleInputs& inputs, const CosineOptions& options) {
  return after_warmup(inputs, options, [lr = inputs.lr, last = options.final_lr](double share) {
    return last + (lr - last) * (1 + std::cos(std::numbers::pi * share)) / 2;
  });
}

}  // namespace precast::recipes
