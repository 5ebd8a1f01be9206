#include "framework/core/random_variables.h"

#include <cmath>

namespace precast {

double log_random_gamma(RandomStream& random, double shape) {
  if (shape < 1) {
    const double smaller = std::log(1 - random.uniform()) / shape;
    return log_random_gamma(random, shape + 1) + smaller;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - random.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

double random_beta(RandomStream& random, double alpha) {
  const double first = log_random_gamma(random, alpha);
  const double second = log_random_gamma(random, alpha);
  return 1 / (1 + std::exp(second - first));
}

}  // namespace precast
