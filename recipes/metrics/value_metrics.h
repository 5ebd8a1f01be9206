#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

/// Figures of regression, for TargetKind::values. They are computed in float64, in the order of the
/// file, from the values of all samples.
///
/// "mse": the squared error, the mean over all values; lower is better.
[[nodiscard]] std::unique_ptr<Metric> make_mse_metric();
/// "r2": 1 - squared error / variance of the targets, the mean over the values of a sample, as
/// scikit-learn's r2_score: of a target that never changes, 1 if it is predicted exactly, else 0.
/// Of one sample: not a number.
[[nodiscard]] std::unique_ptr<Metric> make_r2();

}  // namespace precast::recipes
