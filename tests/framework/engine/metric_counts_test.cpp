#include "framework/engine/metric_counts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/api/single_rank.h"
#include "recipes/register.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"
#include "tests/support/thread_ranks.h"

namespace precast::engine {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

struct Samples {
  at::Tensor outputs, target;
};

/// @return the values that a rank computes from its share, every world-th sample, in batches.
Values values_of(const Metrics& metrics, const Samples& all, Communicator& ranks,
                 std::int64_t batch_size) {
  MetricCounts counts(metrics, at::kCPU);
  const std::int64_t samples = all.outputs.size(0);
  const at::Tensor outputs = all.outputs.slice(0, ranks.rank(), samples, ranks.world());
  const at::Tensor target = all.target.slice(0, ranks.rank(), samples, ranks.world());
  for (std::int64_t first = 0; first < outputs.size(0); first += batch_size) {
    const std::int64_t size = std::min(batch_size, outputs.size(0) - first);
    counts.add(outputs.narrow(0, first, size),
               precast::make_batch(outputs.narrow(0, first, size), target.narrow(0, first, size)));
  }
  return counts.values(ranks, samples);
}

Values single_rank_values(const Metrics& metrics, const Samples& all, std::int64_t batch_size) {
  return values_of(metrics, all, *make_single_rank(), batch_size);
}

std::vector<Values> values_of_ranks(const Metrics& metrics, const Samples& all, int world) {
  std::vector<Values> values(static_cast<std::size_t>(world));
  test::run_as_ranks(world, [&](Communicator& ranks) {
    values[static_cast<std::size_t>(ranks.rank())] = values_of(metrics, all, ranks, 4);
  });
  return values;
}

Metrics metrics_of(const std::vector<std::string>& names) {
  MetricRegistry registry("metric");
  recipes::register_metrics(registry);
  Metrics metrics;
  for (const std::string& name : names) metrics.push_back(registry.make(test::part_spec(name)));
  return metrics;
}

void expect_same_for_all_ranks(const Metrics& metrics, const Samples& samples) {
  const Values expected = single_rank_values(metrics, samples, samples.outputs.size(0));
  EXPECT_EQ(single_rank_values(metrics, samples, 3), expected);
  // With more ranks than samples, some ranks have no samples.
  for (const int world : {2, 3, 5, static_cast<int>(samples.outputs.size(0)) + 2}) {
    for (const Values& values : values_of_ranks(metrics, samples, world))
      EXPECT_EQ(values, expected) << world << " ranks";
  }
}

/// Declares one sum, but count() returns the first row of the outputs, whatever its type and number
/// of elements.
class FirstRow final : public Metric {
 public:
  [[nodiscard]] std::string name() const override { return "first_row"; }
  [[nodiscard]] std::int64_t sums() const override { return 1; }
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& /*batch*/) const override {
    return outputs[0];
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t /*samples*/) const override {
    return sums[0].item<double>();
  }
};

TEST(MetricCountsTest, SumsThatAreNotFloat64OrNotAsDeclaredAreRefused) {
  const Metrics metrics = {std::make_shared<FirstRow>()};
  MetricCounts counts(metrics, at::kCPU);
  const auto add = [&](const at::Tensor& outputs) {
    counts.add(outputs, precast::make_batch(outputs));
  };
  EXPECT_THROW(add(at::ones({3, 1})), std::logic_error) << "float32";
  EXPECT_THROW(add(at::ones({3, 2}, at::kDouble)), std::logic_error);
  EXPECT_NO_THROW(add(at::ones({3, 1}, at::kDouble)));
}

constexpr std::int64_t kSamples = 23;

TEST(MetricCountsTest, RegressionIsTheSameForAnyNumberOfRanks) {
  expect_same_for_all_ranks(metrics_of({"r2", "mse"}), {test::noise_tensor(1, {kSamples, 3}, 1e3),
                                                        test::noise_tensor(2, {kSamples, 3}, 1e3)});
}

TEST(MetricCountsTest, LabelsAreTheSameForAnyNumberOfRanks) {
  expect_same_for_all_ranks(
      metrics_of({"map", "f1"}),
      {test::noise_tensor(1, {kSamples, 4}), test::noise_tensor(2, {kSamples, 4}).gt(0)});
}

TEST(MetricCountsTest, ClassesAndMasksAreTheSameForAnyNumberOfRanks) {
  const at::Tensor classes = at::arange(kSamples, at::kLong).remainder(3);
  expect_same_for_all_ranks(metrics_of({"top_k", "f1", "per_class_accuracy"}),
                            {test::noise_tensor(1, {kSamples, 3}), classes});
  expect_same_for_all_ranks(metrics_of({"mean_iou", "per_class_accuracy"}),
                            {test::noise_tensor(1, {kSamples, 3, 2, 2}),
                             classes.view({-1, 1, 1}).expand({kSamples, 2, 2})});
}

}  // namespace
}  // namespace precast::engine
