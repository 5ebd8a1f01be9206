#include "recipes/methods/mixing.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

/// The logarithm of a gamma variable of that shape: of small shapes the variable itself underflows.
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

}  // namespace

double random_beta(RandomStream& random, double alpha) {
  const double first = log_random_gamma(random, alpha);
  const double second = log_random_gamma(random, alpha);
  return 1 / (1 + std::exp(second - first));
}

at::Tensor class_probabilities(const at::Tensor& labels, std::int64_t classes) {
  if (labels.is_floating_point()) return labels;
  require(labels.dim() == 1, "labels are [N] class indices or [N, classes] probabilities");
  // Not one_hot(), which waits for the device to check the indices.
  at::Tensor probabilities =
      at::zeros({labels.size(0), classes}, labels.options().dtype(at::kFloat));
  return probabilities.scatter_(1, labels.unsqueeze(1), 1.0);
}

at::Tensor partners(const at::Tensor& rows) {
  const std::int64_t count = rows.size(0);
  return at::cat({rows.narrow(0, count - 1, 1), rows.narrow(0, 0, count - 1)});
}

}  // namespace precast::recipes
