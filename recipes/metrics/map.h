#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

/// "map", mean average precision: for each class the mean precision over the samples that have it,
/// ranked by the class's output, then the mean over classes. Like scikit-learn's
/// average_precision_score(average="macro"), so samples with equal outputs share a rank, and a
/// class without samples counts as 0. For TargetKind::multi_hot.
[[nodiscard]] std::unique_ptr<Metric> make_map();

}  // namespace precast::recipes
