#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "recipes/register.h"
#include "tests/support/part_spec.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

using nlohmann::json;

/// Reads tests/golden/recipes/metrics.json, or the file of make_metric_goldens.py that
/// PRECAST_METRIC_CASES names.
json load_cases() {
  const char* file = std::getenv("PRECAST_METRIC_CASES");
  return json::parse(std::ifstream(file != nullptr ? std::string(file)
                                                   : test::golden_dir() + "/recipes/metrics.json"));
}

const json& cases() {
  static const json loaded = load_cases();
  return loaded;
}

at::Tensor tensor_of(const json& array, at::ScalarType type) {
  return at::tensor(array.at("values").get<std::vector<double>>(), at::kDouble)
      .reshape(array.at("shape").get<std::vector<std::int64_t>>())
      .to(type);
}

/// Outputs and targets in the types that a loader delivers.
struct MetricCase {
  explicit MetricCase(const json& one)
      : outputs(tensor_of(one.at("outputs"), at::kFloat)), target(one_target(one)) {}

  static at::Tensor one_target(const json& one) {
    const at::Tensor target = tensor_of(one.at("target"), at::kDouble);
    if (target.dim() == 1) return target.to(at::kLong);
    return target.dim() == 3 ? target.to(at::kByte) : target;
  }

  at::Tensor outputs, target;
};

std::unique_ptr<Metric> metric_of(const json& one) {
  MetricRegistry registry("metric");
  recipes::register_metrics(registry);
  return registry.make(part_spec(one.at("name"), one.at("options").dump()));
}

std::unique_ptr<Loss> loss_of(const json& one) {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry.make(part_spec(one.at("name"), one.at("options").dump()));
}

/// The value of the metric for two batches, the first of which has `split` samples.
double value_of(const Metric& metric, const MetricCase& samples, std::int64_t split) {
  const std::int64_t all = samples.outputs.size(0);
  std::vector<at::Tensor> counted;
  for (const auto& [first, size] :
       {std::pair(std::int64_t{0}, split), std::pair(split, all - split)}) {
    if (size == 0) continue;
    counted.push_back(metric.count(samples.outputs.narrow(0, first, size),
                                   make_batch({}, samples.target.narrow(0, first, size))));
  }
  at::Tensor total = counted.front();
  for (std::size_t i = 1; i < counted.size(); ++i)
    total = metric.needs_rows() ? at::cat({total, counted[i]}) : total + counted[i];
  return metric.value(total.contiguous(), all);
}

TEST(MetricGoldenTest, MetricsAreScikitLearns) {
  for (const json& one : cases().at("metrics")) {
    const auto metric = metric_of(one);
    const MetricCase samples(one);
    const auto expected = one.at("value").get<double>();
    // R2 has no lower bound: below -1, the error is relative.
    EXPECT_NEAR(value_of(*metric, samples, samples.outputs.size(0)), expected,
                1e-9 * std::max(1.0, std::abs(expected)))
        << one.dump();
  }
}

TEST(MetricGoldenTest, MetricsDoNotDependOnTheBatches) {
  for (const json& one : cases().at("metrics")) {
    const auto metric = metric_of(one);
    const MetricCase samples(one);
    EXPECT_EQ(value_of(*metric, samples, samples.outputs.size(0) / 2),
              value_of(*metric, samples, samples.outputs.size(0)))
        << one.dump();
  }
}

TEST(MetricGoldenTest, LossesAreTheirFormulas) {
  for (const json& one : cases().at("losses")) {
    const auto loss = loss_of(one);
    const MetricCase samples(one);
    const double golden = one.at("value").get<double>();
    const at::Tensor mean = (*loss)(samples.outputs, make_batch({}, samples.target));
    EXPECT_EQ(mean.scalar_type(), at::kFloat);
    EXPECT_NEAR(mean.item<double>(), golden, 1e-5 * std::max(1.0, golden)) << one.dump();
  }
}

TEST(MetricGoldenTest, LossesOfSamplesHaveTheBatchsMean) {
  for (const json& one : cases().at("losses")) {
    if (one.at("name") == "pixel_cross_entropy") continue;  // its mean is over pixels, not samples
    const auto loss = loss_of(one);
    const MetricCase samples(one);
    const Batch batch = make_batch({}, samples.target);
    const at::Tensor each = loss->per_sample(samples.outputs, batch);
    EXPECT_EQ(each.sizes(), at::IntArrayRef({samples.outputs.size(0)}));
    const double mean = (*loss)(samples.outputs, batch).item<double>();
    EXPECT_NEAR(each.mean().item<double>(), mean, 1e-5 * std::max(1.0, mean)) << one.dump();
  }
}

}  // namespace
}  // namespace precast::test
