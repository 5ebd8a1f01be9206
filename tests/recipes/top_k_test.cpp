#include "recipes/metrics/top_k.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/support/part_spec.h"

namespace precast::recipes {
namespace {

std::unique_ptr<Metric> top_k(const std::string& options) {
  MetricRegistry metrics("metric");
  register_metrics(metrics);
  return metrics.make(test::part_spec("top_k", options));
}

TEST(TopKTest, CountsSamplesWhoseClassIsAmongTheLargest) {
  const at::Tensor logits = at::tensor({3.0F, 2.0F, 1.0F, 1.0F, 2.0F, 3.0F}).view({2, 3});
  const Batch batch = make_batch({}, at::tensor({1, 0}, at::kLong));
  EXPECT_EQ(top_k("{k: 1}")->count(logits, batch)[0].item<double>(), 0);
  EXPECT_EQ(top_k("{k: 2}")->count(logits, batch)[0].item<double>(), 1);
  EXPECT_EQ(top_k("{k: 9}")->count(logits, batch)[0].item<double>(), 2);
}

TEST(TopKTest, IsNamedAfterItsOption) {
  EXPECT_EQ(top_k("{k: 3}")->name(), "top_3");
  EXPECT_EQ(top_k("{}")->name(), "top_1");
  EXPECT_TRUE(top_k("{}")->higher_is_better());
  EXPECT_THROW((void)top_k("{k: 0}"), ConfigError);
}

TEST(TopKTest, ItsValueIsAShare) {
  EXPECT_EQ(top_k("{}")->value(at::tensor({3.0}, at::kDouble), 4), 0.75);
}

TEST(TopKTest, OutputsThatAreNoLogitsAreRefused) {
  const Batch batch = make_batch({}, at::tensor({1, 0}, at::kLong));
  EXPECT_THROW((void)top_k("{}")->count(at::zeros({2, 3, 4}), batch), std::logic_error);
}

}  // namespace
}  // namespace precast::recipes
