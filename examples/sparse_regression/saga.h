#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "sample_stream.h"

namespace sparse_regression {

/// The options of a path of solutions. For each lambda, solve_path() minimises
///   |y - b - Z w|^2 / (2 n) + lambda (l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2)
/// where Z are the features minus their means, divided by their deviations. scikit-learn's
/// enet_path() solves the same problem for standardised features and a centred target.
struct PathOptions {
  /// Number of lambdas: from the smallest one for which all coefficients are 0 down to
  /// `lambda_ratio` times this value, with equal ratios.
  int lambdas = 10;
  double lambda_ratio = 0.01;
  double l1_ratio = 0.99;
  /// The solver has converged for a lambda when the duality gap is at most this fraction of the
  /// objective.
  double tolerance = 1e-5;
  /// Maximum number of passes that change the coefficients, for one lambda.
  int max_epochs = 100;
  /// The step size is this divided by the smoothness of a batch's loss and L2 penalty.
  double step_scale = 0.5;
  /// Number of threads that compute.
  int threads = 1;
};

struct PathPoint {
  double lambda = 0;
  double objective = 0;
  /// Objective minus dual objective, both computed exactly.
  double gap = 0;
  double r2 = 0;
  std::int64_t nonzeros = 0;
  /// Number of passes that changed the coefficients, and number of passes that computed the exact
  /// gap.
  int epochs = 0;
  int exact_passes = 0;
  double seconds = 0;
  bool converged = false;
  /// Coefficients of the features as they are stored, float64 [features], on the CPU.
  at::Tensor coefficients;
  double intercept = 0;
};

/// The state of the solver after a pass.
struct Progress {
  std::size_t lambda = 0;
  int epochs = 0;
  double objective = 0;
  double gap = 0;
  bool exact = false;
  double seconds = 0;
};

struct PathResult {
  double lambda_max = 0;
  /// Largest squared norm of a standardised row, largest eigenvalue of Z'Z / n, and the expected
  /// smoothness of a batch that follows from both.
  double row_smoothness = 0;
  double full_smoothness = 0;
  double batch_smoothness = 0;
  std::int64_t constant_features = 0;
  double preparation_seconds = 0;
  /// Median time of the passes that changed the coefficients.
  double epoch_seconds = 0;
  std::vector<PathPoint> points;
};

using OnPass = std::function<void(const Progress&)>;

/// Solves the problem for all lambdas by SAGA (Defazio et al. 2014) with batches, as in glm_saga
/// (Wong et al. 2021). The table contains one number per sample: its residual when it was last
/// used. The coefficients, the table and its gradient are the starting point for the next lambda.
/// The gap is estimated from the residuals of an epoch. If the estimate is small enough, a pass
/// without steps computes the exact gap and updates the table. Results depend on seed and options,
/// not on threads or workers.
/// @throws precast::DataError for features that are not finite; precast::Error with
/// ExitCode::diverged; the errors of the stream.
[[nodiscard]] PathResult solve_path(SampleStream& stream, const PathOptions& options,
                                    const OnPass& on_pass);

/// Memory that solve_path() uses in addition to the stream, in bytes.
[[nodiscard]] std::uint64_t solver_bytes(std::int64_t samples, std::int64_t features, int lambdas);

}  // namespace sparse_regression
