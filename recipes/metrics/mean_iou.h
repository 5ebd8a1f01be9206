#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

struct MeanIouOptions {
  /// Pixels of this class are ignored; -1: all pixels count. In a recipe, the default is the loss's
  /// ignore_index (tools/app/recipe_parts.h).
  std::int64_t ignore_index = 255;

  void options(Schema& schema);
};

/// "mean_iou", intersection over union: for each class, the number of pixels that have this class
/// and were predicted as it, divided by the number of pixels that have it or were predicted as it.
/// The result is the mean over the classes that occur or were predicted, like scikit-learn's
/// jaccard_score(average="macro") of all pixels. For TargetKind::class_mask.
[[nodiscard]] std::unique_ptr<Metric> make_mean_iou(const MeanIouOptions& options);

}  // namespace precast::recipes
