#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

struct PerClassAccuracyOptions {
  /// Pixels of this class do not count, in masks; -1: all pixels count.
  std::int64_t ignore_index = 255;

  void options(Schema& schema);
};

/// "per_class_accuracy": the mean over the classes that occur of the share of their samples (of
/// their pixels, for masks) that were taken for the class, as scikit-learn's
/// balanced_accuracy_score. For TargetKind::class_index and class_mask.
[[nodiscard]] std::unique_ptr<Metric> make_per_class_accuracy(
    const PerClassAccuracyOptions& options);

}  // namespace precast::recipes
