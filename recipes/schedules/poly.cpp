#include "recipes/schedules/poly.h"

#include <cmath>

#include "recipes/schedules/after_warmup.h"

namespace precast::recipes {

void PolyOptions::options(Schema& schema) {
  WarmupOptions::options(schema);
  schema.add("power", &power, "exponent of the decay").above(0);
}

std::unique_ptr<Schedule> make_poly(const ScheduleInputs& inputs, const PolyOptions& options) {
  return after_warmup(inputs, options, [lr = inputs.lr, power = options.power](double share) {
    return lr * std::pow(1 - share, power);
  });
}

}  // namespace precast::recipes
