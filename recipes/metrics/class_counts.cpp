#include "recipes/metrics/class_counts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "framework/core/error.h"
#include "recipes/losses/target_shapes.h"

namespace precast::recipes {

ClassCounts::ClassCounts(const at::Tensor& counts) {
  const auto classes = static_cast<std::size_t>(counts.numel() / 3);
  const std::span<const double> all(counts.const_data_ptr<double>(), 3 * classes);
  correct = all.first(classes);
  predicted = all.subspan(classes, classes);
  actual = all.subspan(2 * classes, classes);
}

at::Tensor count_classes(const at::Tensor& predicted, const at::Tensor& actual,
                         std::int64_t classes) {
  require(predicted.sizes() == actual.sizes(), "predicted and actual classes have the same shape");
  // An extra bin receives the ignored elements. No shape then depends on the values, so nothing
  // waits for the device.
  const at::Tensor ignored_bin = at::full_like(actual, classes);
  const at::Tensor counted = actual.ge(0).logical_and_(actual.lt(classes));
  const auto histogram = [&](const at::Tensor& which, const at::Tensor& values) {
    const at::Tensor bins = at::where(which, values, ignored_bin).flatten();
    at::Tensor counts = at::zeros({classes + 1}, bins.options());
    counts.index_add_(0, bins, bins.new_ones(bins.sizes()));
    return counts.narrow(0, 0, classes);
  };
  at::Tensor counts = at::zeros({3, classes}, actual.options());
  counts[0].copy_(histogram(counted.logical_and(predicted.eq(actual)), actual));
  counts[1].copy_(histogram(counted, predicted));
  counts[2].copy_(histogram(counted, actual));
  return counts.flatten().to(at::kDouble);
}

at::Tensor count_best_classes(const at::Tensor& outputs, const at::Tensor& target,
                              std::int64_t ignore_index) {
  at::Tensor classes = target;
  if (outputs.dim() == 4) {
    classes = pixel_classes(outputs, target);
  } else {
    require_class_index(outputs, target);
  }
  // count_classes() ignores -1, which is not a class.
  classes = at::where(classes.eq(ignore_index), at::full_like(classes, -1), classes);
  return count_classes(at::argmax(outputs, 1), classes, outputs.size(1));
}

}  // namespace precast::recipes
