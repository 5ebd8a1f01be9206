#include "recipes/metrics/map.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "recipes/losses/target_shapes.h"

namespace precast::recipes {
namespace {

/// Score and label of each sample.
using Scored = std::vector<std::pair<double, bool>>;

double average_precision(Scored& samples) {
  std::ranges::sort(samples, std::ranges::greater(), &Scored::value_type::first);
  double positives = 0, sum = 0;
  for (std::size_t first = 0; first < samples.size();) {
    // Samples with equal scores share a threshold.
    std::size_t end = first;
    double found = 0;
    for (; end < samples.size() && samples[end].first == samples[first].first; ++end)
      found += samples[end].second ? 1 : 0;
    positives += found;
    sum += found * positives / static_cast<double>(end);
    first = end;
  }
  return positives > 0 ? sum / positives : 0;
}

class MeanAveragePrecision final : public Metric {
 public:
  [[nodiscard]] std::string name() const override { return "map"; }
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::multi_hot;
  }
  [[nodiscard]] bool needs_rows() const override { return true; }
  [[nodiscard]] std::int64_t sums() const override { return 0; }
  /// Returns a row for each sample: its outputs, then for each class whether the sample has this
  /// class.
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    require_multi_hot(outputs, batch.target());
    return at::cat({outputs.to(at::kDouble), batch.target().gt(0.5).to(at::kDouble)}, 1);
  }
  [[nodiscard]] double value(const at::Tensor& rows, std::int64_t samples) const override {
    const std::int64_t classes = rows.size(1) / 2;
    const double* values = rows.const_data_ptr<double>();
    double sum = 0;
    for (std::int64_t column = 0; column < classes; ++column) {
      Scored scored;
      for (std::int64_t i = 0; i < samples; ++i) {
        const double* row = values + 2 * classes * i + column;
        // NaN would break the sort, so it is replaced by -infinity.
        scored.emplace_back(std::isnan(row[0]) ? -HUGE_VAL : row[0], row[classes] != 0);
      }
      sum += average_precision(scored);
    }
    return sum / static_cast<double>(classes);
  }
};

}  // namespace

std::unique_ptr<Metric> make_map() {
  return std::make_unique<MeanAveragePrecision>();
}

}  // namespace precast::recipes
