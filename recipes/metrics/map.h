#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

/// "map", mean average precision: for each class the mean precision over the samples that have it,
/// ranked by the class's output, then the mean over classes; as scikit-learn's
/// average_precision_score(average="macro"), so samples with equal outputs count together, and a
/// class that no sample has counts as 0. For TargetKind::multi_hot.
[[nodiscard]] std::unique_ptr<Metric> make_map();

}  // namespace precast::recipes
