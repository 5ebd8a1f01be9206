#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

struct MeanIouOptions {
  /// Pixels of this class do not count; -1: all pixels count.
  std::int64_t ignore_index = 255;

  void options(Schema& schema);
};

/// "mean_iou": pixels that have a class and were taken for it, as a share of those that have it or
/// were taken for it; the mean over the classes that occur or were predicted, as scikit-learn's
/// jaccard_score(average="macro") of all pixels. For TargetKind::class_mask.
[[nodiscard]] std::unique_ptr<Metric> make_mean_iou(const MeanIouOptions& options);

}  // namespace precast::recipes
