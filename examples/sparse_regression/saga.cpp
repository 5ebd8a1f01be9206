#include "saga.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "products.h"

namespace sparse_regression {
namespace {

/// Passes of the power iteration. It approaches the largest eigenvalue from below; the step size
/// leaves room for the difference.
constexpr int kPowerPasses = 5;
/// The solver has diverged if the objective is this many times the objective for coefficients of 0.
constexpr double kDiverged = 10;

double number(const at::Tensor& value) {
  return value.item<double>();
}

double squares(const at::Tensor& values) {
  return number(ordered_sum(values.to(at::kDouble).square()));
}

/// Means and deviations of the features, and the gradient where all coefficients are 0.
struct Moments {
  /// float64 [features].
  at::Tensor mean;
  /// 0 for a constant feature.
  at::Tensor inverse_deviation;
  /// Z' (mean of y - y) / n
  at::Tensor gradient;
};

class Saga {
 public:
  Saga(SampleStream& stream, const PathOptions& options)
      : options_(options),
        stream_(stream),
        products_(stream.features(), stream.device(), options.threads),
        n_(static_cast<double>(stream.samples())) {}

  /// Computes everything that the first lambda needs. @return the largest lambda and the
  /// smoothness.
  PathResult prepare() {
    const double begin = now_seconds();
    target_mean_ = number(ordered_sum(stream_.targets())) / n_;
    targets_ = (stream_.targets() - target_mean_).to(at::kFloat).to(stream_.device());
    null_objective_ = squares(targets_) / (2 * n_);
    if (null_objective_ == 0)
      throw precast::DataError("saga: expected a target that varies, got a constant one");
    moments_ = find_moments();
    gradient_ = moments_.gradient.clone();
    table_ = -targets_;
    w_ = at::zeros_like(gradient_);
    PathResult result;
    result.constant_features = moments_.inverse_deviation.eq(0).sum().item<std::int64_t>();
    result.lambda_max = number(gradient_.abs().max()) / options_.l1_ratio;
    result.row_smoothness = largest_row();
    result.full_smoothness = largest_eigenvalue();
    // The expected smoothness of batches drawn without replacement: Gower, Richtarik, Bach,
    // "Stochastic quasi-gradient methods" (2018).
    const double b = static_cast<double>(std::min(stream_.batch_size(), stream_.samples()));
    const double others = std::max(n_ - 1, 1.0);
    smoothness_ = n_ * (b - 1) / (b * others) * result.full_smoothness +
                  (n_ - b) / (b * others) * result.row_smoothness;
    smoothness_ = std::max(smoothness_, result.full_smoothness);
    result.batch_smoothness = smoothness_;
    result.preparation_seconds = now_seconds() - begin;
    return result;
  }

  /// Runs one epoch. @return the objective, computed from the residuals of all steps. It is an
  /// estimate, because the coefficients change with each step.
  double epoch(double lambda) {
    const double l1 = lambda * options_.l1_ratio;
    const double l2 = lambda * (1 - options_.l1_ratio);
    const double step = options_.step_scale / (smoothness_ + l2);
    at::Tensor loss = at::zeros({}, at::device(stream_.device()).dtype(at::kDouble));
    stream_.pass([&](const at::Tensor& rows, const at::Tensor& ids) {
      const at::Tensor old = table_.index_select(0, ids);
      const Products products = multiply(rows, w_, targets_.index_select(0, ids) + old);
      const at::Tensor residuals = products.residuals + old;
      table_.index_copy_(0, ids, residuals);
      loss.add_(ordered_sum(residuals.to(at::kDouble).square()));
      // The change of the batch's gradient: a sum over its samples, while `gradient_` is a mean
      // over all n samples.
      const at::Tensor& change = products.gradient;
      w_.sub_(gradient_, step).sub_(change, step / static_cast<double>(rows.size(0)));
      gradient_.add_(change, 1 / n_);
      // The proximal step of the elastic net.
      const at::Tensor size = w_.abs().sub_(step * l1).clamp_min_(0).div_(1 + step * l2);
      w_.sign_().mul_(size);
    });
    return number(loss) / (2 * n_) + penalty(lambda);
  }

  /// Runs a pass without steps, which computes the table and its gradient for the current
  /// coefficients.
  void exact_pass() {
    at::Tensor gradient = at::zeros_like(gradient_);
    stream_.pass([&](const at::Tensor& rows, const at::Tensor& ids) {
      const Products products = multiply(rows, w_, targets_.index_select(0, ids));
      table_.index_copy_(0, ids, products.residuals);
      gradient.add_(products.gradient, 1 / n_);
    });
    gradient_ = gradient;
  }

  /// The objective of the current coefficients, after exact_pass().
  [[nodiscard]] double objective(double lambda) const {
    return squares(table_) / (2 * n_) + penalty(lambda);
  }

  /// Returns a lower bound of the objective. The dual objective at any residuals is a lower bound.
  /// It is computed at the best multiple of the table whose gradient stays within the L1 bound and,
  /// if there is an L2 term, also at the table itself; the larger value is returned.
  [[nodiscard]] double dual(double lambda) const {
    const double l1 = lambda * options_.l1_ratio;
    const double l2 = lambda * (1 - options_.l1_ratio);
    const double table_squares = squares(table_) / n_;
    const double products = number(ordered_sum(table_.to(at::kDouble) * targets_)) / n_;
    const auto value = [&](double scale) {
      return -scale * scale * table_squares / 2 - scale * products;
    };
    const double largest = number(gradient_.abs().max());
    const double feasible = largest > 0 ? l1 / largest : 1;
    double best =
        value(std::clamp(-products / std::max(table_squares, 1e-300), -feasible, feasible));
    if (l2 > 0)
      best = std::max(best, value(1) - squares((gradient_.abs() - l1).clamp_min(0)) / (2 * l2));
    return best;
  }

  /// @throws precast::Error
  void check(double objective) const {
    if (std::isfinite(objective) && objective <= kDiverged * null_objective_) return;
    throw precast::Error(
        fmt::format("saga: expected an objective of at most {:.4g}, got {:.4g}. The solver "
                    "diverges: decrease --step-scale",
                    kDiverged * null_objective_, objective),
        precast::ExitCode::diverged);
  }

  /// Fills `point` with the current coefficients.
  void describe(PathPoint& point) const {
    const at::Tensor coefficients = w_ * moments_.inverse_deviation;
    point.nonzeros = w_.ne(0).sum().item<std::int64_t>();
    point.intercept = target_mean_ - number(ordered_sum(coefficients * moments_.mean));
    point.coefficients = coefficients.to(at::kCPU);
    point.r2 = 1 - squares(table_) / (2 * n_) / null_objective_;
  }

 private:
  [[nodiscard]] double penalty(double lambda) const {
    return lambda * (options_.l1_ratio * number(ordered_sum(w_.abs())) +
                     (1 - options_.l1_ratio) / 2 * squares(w_));
  }

  /// The products of the batch's rows of Z: residuals Z v - offset, gradient Z' residuals.
  Products multiply(const at::Tensor& rows, const at::Tensor& v, const at::Tensor& offset) {
    const at::Tensor scaled = v * moments_.inverse_deviation;
    const at::Tensor shift = ordered_sum(scaled * moments_.mean).to(at::kFloat);
    Products products = products_.multiply(rows, scaled.to(at::kFloat), offset + shift);
    const at::Tensor total = ordered_sum(products.residuals);
    products.gradient.sub_(moments_.mean * total).mul_(moments_.inverse_deviation);
    return products;
  }

  Moments find_moments() {
    const auto options = at::device(stream_.device());
    const at::Tensor totals = at::zeros({3, stream_.features()}, options.dtype(at::kDouble));
    // Sums differences from one row, so that a large mean causes no cancellation.
    at::Tensor origin;
    stream_.pass([&](const at::Tensor& rows, const at::Tensor& ids) {
      if (!origin.defined())
        origin = rows.select(0, 0).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
      const at::Tensor y = targets_.index_select(0, ids);
      totals.add_(products_.sum_blocks(
          rows, 3, [&](const at::Tensor& block, std::int64_t first, at::Tensor& sums) {
            at::Tensor moved = block - origin;
            const at::Tensor ones = at::ones({block.size(0)}, options.dtype(at::kFloat));
            sums.select(0, 0).addmv_(moved.t(), ones);
            sums.select(0, 1).addmv_(moved.t(), y.narrow(0, first, block.size(0)));
            sums.select(0, 2).addmv_(moved.square_().t(), ones);
          }));
    });
    if (!totals.isfinite().all().item<bool>())
      throw precast::DataError(
          fmt::format("saga: expected finite features, got NaN or infinity (feature {})",
                      totals.isfinite().all(0).to(at::kInt).argmin().item<std::int64_t>()));
    const at::Tensor moved_mean = totals[0] / n_;
    const at::Tensor variance = (totals[2] / n_ - moved_mean.square()).clamp_min(0);
    // A smaller variance consists only of rounding errors.
    const at::Tensor constant = variance <= 1e-12 * totals[2] / n_;
    const at::Tensor inverse = at::where(constant, 0., variance.rsqrt());
    // The targets sum to 0, so subtracting the origin does not change Z' y.
    const at::Tensor products = totals[1] - moved_mean * ordered_sum(targets_);
    return {.mean = moved_mean + origin,
            .inverse_deviation = inverse,
            .gradient = products * inverse / -n_};
  }

  /// Largest squared norm of a row of Z.
  double largest_row() {
    double largest = 0;
    const at::Tensor mean = moments_.mean.to(at::kFloat);
    const at::Tensor inverse = moments_.inverse_deviation.to(at::kFloat);
    stream_.pass([&](const at::Tensor& rows, const at::Tensor& ids) {
      at::Tensor norms = at::zeros({ids.numel()}, at::device(stream_.device()).dtype(at::kFloat));
      static_cast<void>(products_.sum_blocks(
          rows, 1, [&](const at::Tensor& block, std::int64_t first, at::Tensor& /*sums*/) {
            norms.narrow(0, first, block.size(0))
                .copy_((block - mean).mul_(inverse).square_().sum(1));
          }));
      largest = std::max(largest, number(norms.max()));
    });
    return largest;
  }

  /// The largest eigenvalue of Z'Z / n, by power iteration.
  double largest_eigenvalue() {
    at::Tensor v = gradient_ / std::sqrt(squares(gradient_));
    double eigenvalue = 0;
    for (int i = 0; i < kPowerPasses; ++i) {
      at::Tensor next = at::zeros_like(v);
      stream_.pass([&](const at::Tensor& rows, const at::Tensor& ids) {
        const auto zeros = at::zeros({ids.numel()}, targets_.options());
        next.add_(multiply(rows, v, zeros).gradient, 1 / n_);
      });
      eigenvalue = std::sqrt(squares(next));
      v = next / eigenvalue;
    }
    return eigenvalue;
  }

  PathOptions options_;
  SampleStream& stream_;
  BatchProducts products_;
  double n_;
  double target_mean_ = 0;
  double null_objective_ = 0;
  double smoothness_ = 0;
  Moments moments_;
  /// Centred, float32 [samples].
  at::Tensor targets_;
  /// The residual of each sample when it was last used, float32 [samples], and Z' table / n.
  at::Tensor table_;
  at::Tensor gradient_;
  /// Coefficients of the standardised features, float64 [features].
  at::Tensor w_;
};

/// For an even number of values, the mean of the two middle values; 0 if there are none.
double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Minimises the objective for one value of lambda, starting from the current coefficients. @param
/// epoch_seconds the time of each epoch is appended.
PathPoint solve_point(Saga& saga, std::size_t index, double lambda, const PathOptions& options,
                      const OnPass& on_pass, std::vector<double>& epoch_seconds) {
  PathPoint point;
  point.lambda = lambda;
  const double begin = now_seconds();
  // The table is exact at the start: the preparation and the previous lambda leave an exact table.
  bool exact = true;
  point.objective = saga.objective(lambda);
  for (;;) {
    saga.check(point.objective);
    point.gap = std::max(0.0, point.objective - saga.dual(lambda));  // Below 0 only by rounding.
    const bool small = point.gap <= options.tolerance * point.objective;
    point.converged = exact && small;
    on_pass({.lambda = index,
             .epochs = point.epochs,
             .objective = point.objective,
             .gap = point.gap,
             .exact = exact,
             .seconds = now_seconds() - begin});
    if (exact && (small || point.epochs >= options.max_epochs)) break;
    exact = small || point.epochs >= options.max_epochs;
    if (exact) {
      saga.exact_pass();
      point.objective = saga.objective(lambda);
      ++point.exact_passes;
    } else {
      const double epoch_begin = now_seconds();
      point.objective = saga.epoch(lambda);
      epoch_seconds.push_back(now_seconds() - epoch_begin);
      ++point.epochs;
    }
  }
  saga.describe(point);
  point.seconds = now_seconds() - begin;
  return point;
}

}  // namespace

PathResult solve_path(SampleStream& stream, const PathOptions& options, const OnPass& on_pass) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  Saga saga(stream, options);
  PathResult result = saga.prepare();
  std::vector<double> epoch_seconds;
  for (int i = 0; i < options.lambdas; ++i) {
    const double share = options.lambdas == 1 ? 0 : static_cast<double>(i) / (options.lambdas - 1);
    const double lambda = result.lambda_max * std::pow(options.lambda_ratio, share);
    result.points.push_back(
        solve_point(saga, static_cast<std::size_t>(i), lambda, options, on_pass, epoch_seconds));
  }
  result.epoch_seconds = median(epoch_seconds);
  return result;
}

std::uint64_t solver_bytes(std::int64_t samples, std::int64_t features, int lambdas) {
  // The number of float64 [features] tensors: moments, their totals, coefficients, gradient and
  // temporaries.
  constexpr std::int64_t kRows = 20;
  const std::int64_t values = (kRows + lambdas) * features + 4 * samples;
  return static_cast<std::uint64_t>(values) * sizeof(double) +
         BatchProducts::memory_bytes(features);
}

}  // namespace sparse_regression
