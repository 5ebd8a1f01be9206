#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

/// Metrics for regression (TargetKind::values). They are computed in float64 from the values of all
/// samples, in the order of the file.
///
/// "mse": the mean squared error over all values; lower is better.
[[nodiscard]] std::unique_ptr<Metric> make_mse_metric();
/// "r2": for each value of a sample, 1 - mean squared error / variance of the target over all
/// samples; then the mean over these values, like scikit-learn's r2_score. A constant target gives
/// 1 if it is predicted exactly, else 0. NaN for a single sample.
[[nodiscard]] std::unique_ptr<Metric> make_r2();

}  // namespace precast::recipes
