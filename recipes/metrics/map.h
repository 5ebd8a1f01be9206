#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

/// "map", mean average precision: samples are ranked by the output for a class, the precision at
/// each sample that has this class is averaged, and these values are averaged over classes. Like
/// scikit-learn's average_precision_score(average="macro"), so samples with equal outputs share a
/// rank, and a class without samples counts as 0. For TargetKind::multi_hot.
[[nodiscard]] std::unique_ptr<Metric> make_map();

}  // namespace precast::recipes
