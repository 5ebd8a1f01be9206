#include "recipes/metrics/value_metrics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "recipes/losses/target_shapes.h"

namespace precast::recipes {
namespace {

class ValueMetric : public Metric {
 public:
  [[nodiscard]] bool accepts(TargetKind kind) const override { return kind == TargetKind::values; }
  [[nodiscard]] bool needs_rows() const override { return true; }
  [[nodiscard]] std::int64_t sums() const override { return 0; }
};

class Mse final : public ValueMetric {
 public:
  [[nodiscard]] std::string name() const override { return "mse"; }
  [[nodiscard]] bool higher_is_better() const override { return false; }
  /// The mean squared error of each sample.
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    const at::Tensor target = values_like(outputs, batch.target()).to(at::kDouble);
    const at::Tensor squares = (outputs.to(at::kDouble) - target).square();
    return squares.reshape({outputs.size(0), -1}).mean(1, /*keepdim=*/true);
  }
  [[nodiscard]] double value(const at::Tensor& rows, std::int64_t samples) const override {
    const double* means = rows.const_data_ptr<double>();
    double sum = 0;
    for (std::int64_t i = 0; i < samples; ++i) sum += means[i];
    return sum / static_cast<double>(samples);
  }
};

class R2 final : public ValueMetric {
 public:
  [[nodiscard]] std::string name() const override { return "r2"; }
  /// Returns a row for each sample: its targets, then its outputs.
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    const at::Tensor target = values_like(outputs, batch.target()).to(at::kDouble);
    const std::int64_t samples = outputs.size(0);
    return at::cat({target.reshape({samples, -1}), outputs.to(at::kDouble).reshape({samples, -1})},
                   1);
  }
  [[nodiscard]] double value(const at::Tensor& rows, std::int64_t samples) const override {
    if (samples < 2) return NAN;
    const std::int64_t width = rows.size(1) / 2;
    double sum = 0;
    for (std::int64_t column = 0; column < width; ++column) sum += of_column(rows, column, width);
    return sum / static_cast<double>(width);
  }

 private:
  static double of_column(const at::Tensor& rows, std::int64_t column, std::int64_t width) {
    const double* values = rows.const_data_ptr<double>() + column;
    const std::int64_t samples = rows.size(0);
    // The first target is subtracted, so that the targets of a constant column are exactly 0.
    const double first = values[0];
    double mean = 0;
    for (std::int64_t i = 0; i < samples; ++i) mean += values[2 * width * i] - first;
    mean /= static_cast<double>(samples);
    double residual = 0, total = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double target = values[2 * width * i];
      const double error = target - values[2 * width * i + width];
      residual += error * error;
      const double deviation = target - first - mean;
      total += deviation * deviation;
    }
    if (total > 0) return 1 - residual / total;
    return residual == 0 ? 1 : 0;
  }
};

}  // namespace

std::unique_ptr<Metric> make_mse_metric() {
  return std::make_unique<Mse>();
}

std::unique_ptr<Metric> make_r2() {
  return std::make_unique<R2>();
}

}  // namespace precast::recipes
