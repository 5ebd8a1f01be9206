#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

struct PerClassAccuracyOptions {
  /// For masks: pixels of this class are ignored; -1: all pixels count. In a recipe, the default is
  /// the loss's ignore_index (tools/app/recipe_parts.h).
  std::int64_t ignore_index = 255;

  void options(Schema& schema);
};

/// "per_class_accuracy": the fraction of the samples (or pixels, for masks) of a class that were
/// predicted as this class, averaged over the classes that occur, like scikit-learn's
/// balanced_accuracy_score. For TargetKind::class_index and class_mask.
[[nodiscard]] std::unique_ptr<Metric> make_per_class_accuracy(
    const PerClassAccuracyOptions& options);

}  // namespace precast::recipes
