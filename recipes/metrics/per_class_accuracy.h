#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

struct PerClassAccuracyOptions {
  /// For masks: pixels of this class do not count; -1: all pixels count.
  std::int64_t ignore_index = 255;

  void options(Schema& schema);
};

/// "per_class_accuracy": for each class that occurs, the share of its samples (or pixels, for
/// masks) that were predicted as it; the mean over these classes, like scikit-learn's
/// balanced_accuracy_score. For TargetKind::class_index and class_mask.
[[nodiscard]] std::unique_ptr<Metric> make_per_class_accuracy(
    const PerClassAccuracyOptions& options);

}  // namespace precast::recipes
