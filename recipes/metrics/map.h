#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

/// "map", mean average precision: samples are sorted by the output for a class, the precision at
/// each sample that has this class is averaged, and these averages are averaged over the classes.
/// As in scikit-learn's average_precision_score(average="macro"), samples with equal outputs share
/// a position, and a class without samples counts as 0. For TargetKind::multi_hot; a sample has the
/// classes whose targets are above 0.5.
[[nodiscard]] std::unique_ptr<Metric> make_map();

}  // namespace precast::recipes
