#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "framework/api/method.h"
#include "framework/core/error.h"
#include "recipes/register.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

std::unique_ptr<Loss> loss(const std::string& name, const std::string& options = "") {
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  return registry.make(part_spec(name, options));
}

std::unique_ptr<Metric> metric(const std::string& name) {
  MetricRegistry registry("metric");
  recipes::register_metrics(registry);
  return registry.make(part_spec(name));
}

TEST(TargetKindTest, EachLossDeclaresItsTargets) {
  const std::map<std::string, TargetKind> kinds = {{"cross_entropy", TargetKind::class_index},
                                                   {"bce", TargetKind::class_index},
                                                   {"mse", TargetKind::values},
                                                   {"l1", TargetKind::values},
                                                   {"huber", TargetKind::values},
                                                   {"multi_label_bce", TargetKind::multi_hot},
                                                   {"pixel_cross_entropy", TargetKind::class_mask}};
  LossRegistry registry("loss");
  recipes::register_losses(registry);
  for (const auto& entry : registry.entries()) {
    ASSERT_TRUE(kinds.contains(entry.name)) << entry.name;
    EXPECT_EQ(loss(entry.name)->target_kind(), kinds.at(entry.name)) << entry.name;
  }
}

TEST(TargetKindTest, MethodsThatMixLabelsNeedClassIndices) {
  MethodRegistry registry("method");
  recipes::register_methods(registry);
  for (const char* name : {"mixup", "cutmix", "mixup_or_cutmix", "label_smoothing", "bce_loss"}) {
    EXPECT_TRUE(registry.create(name)->accepts(TargetKind::class_index)) << name;
    EXPECT_FALSE(registry.create(name)->accepts(TargetKind::values)) << name;
    EXPECT_FALSE(registry.create(name)->accepts(TargetKind::multi_hot)) << name;
  }
  EXPECT_TRUE(registry.create("ema")->accepts(TargetKind::class_mask));
  EXPECT_FALSE(registry.create("batch_resize")->accepts(TargetKind::class_mask));
}

TEST(TargetKindTest, MetricsSayWhichTargetsTheyRead) {
  EXPECT_FALSE(metric("top_k")->accepts(TargetKind::values));
  EXPECT_TRUE(metric("r2")->accepts(TargetKind::values));
  EXPECT_FALSE(metric("r2")->accepts(TargetKind::class_index));
  EXPECT_TRUE(metric("f1")->accepts(TargetKind::multi_hot));
  EXPECT_FALSE(metric("map")->accepts(TargetKind::class_index));
  EXPECT_FALSE(metric("mse")->higher_is_better());
  EXPECT_TRUE(metric("mean_iou")->higher_is_better());
}

TEST(TargetKindTest, NumbersAndArraysOfOneValueAreTheSame) {
  const at::Tensor outputs = noise_tensor(1, {4, 1});
  const at::Tensor numbers = noise_tensor(2, {4}).to(at::kDouble);
  for (const char* name : {"mse", "l1", "huber"}) {
    const double flat = (*loss(name))(outputs, make_batch({}, numbers)).item<double>();
    EXPECT_EQ(flat, (*loss(name))(outputs, make_batch({}, numbers.unsqueeze(1))).item<double>());
    EXPECT_GT(flat, 0);
  }
}

TEST(TargetKindTest, OtherShapesAreRefused) {
  const Batch transposed = make_batch({}, at::zeros({4, 3, 2}));
  EXPECT_THROW((void)(*loss("mse"))(at::zeros({4, 2, 3}), transposed), std::logic_error);
  EXPECT_NO_THROW((void)(*loss("mse"))(at::zeros({4, 6}), transposed));
  EXPECT_THROW((void)(*loss("mse"))(at::zeros({4, 5}), transposed), std::logic_error);
  EXPECT_THROW((void)(*loss("multi_label_bce"))(at::zeros({4, 5}), make_batch({}, at::zeros({4}))),
               std::logic_error);
  EXPECT_THROW((void)(*loss("pixel_cross_entropy"))(at::zeros({4, 5, 2, 2}),
                                                    make_batch({}, at::zeros({4, 2, 2}))),
               std::logic_error);
  EXPECT_THROW((void)loss("huber", "{delta: 0}"), ConfigError);
}

TEST(TargetKindTest, PixelsThatDoNotCountChangeNothing) {
  const at::Tensor logits = noise_tensor(1, {2, 3, 4, 4}, 8);
  at::Tensor masks = at::arange(32, at::kByte).remainder(3).view({2, 4, 4});
  const auto of = [&](const at::Tensor& with) {
    return (*loss("pixel_cross_entropy"))(with, make_batch({}, masks)).item<double>();
  };
  masks[1].fill_(255);
  at::Tensor changed = logits.clone();
  changed[1].add_(noise_tensor(2, {3, 4, 4}, 8));
  EXPECT_EQ(of(logits), of(changed));
  masks.fill_(255);
  EXPECT_EQ(of(logits), 0) << "all pixels are ignored";
}

TEST(TargetKindTest, RSquaredOfLargeNumbersIsExact) {
  const at::Tensor target = at::tensor({1e8 + 1, 1e8 + 2, 1e8 + 3}, at::kDouble);
  const at::Tensor outputs = at::tensor({1e8 + 1, 1e8 + 2, 1e8 + 4}, at::kDouble).view({3, 1});
  const auto r2 = metric("r2");
  EXPECT_DOUBLE_EQ(r2->value(r2->count(outputs, make_batch({}, target)), 3), 0.5);
  EXPECT_TRUE(std::isnan(
      r2->value(r2->count(outputs.narrow(0, 0, 1), make_batch({}, target.narrow(0, 0, 1))), 1)));
}

/// @return the value of a metric that is counted on two ranks, for samples 0, 2, ... and for
/// samples 1, 3, ...
double over_two_ranks(const Metric& metric, const at::Tensor& outputs, const at::Tensor& target) {
  std::vector<at::Tensor> counted;
  for (const std::int64_t rank : {0, 1}) {
    const auto part = [rank](const at::Tensor& all) { return all.slice(0, rank, std::nullopt, 2); };
    counted.push_back(metric.count(part(outputs), make_batch({}, part(target))));
  }
  // Rows must be in the order of the file, so the rows of the two ranks alternate.
  const at::Tensor total =
      metric.needs_rows() ? at::stack(counted, 1).flatten(0, 1) : counted[0] + counted[1];
  return metric.value(total.contiguous(), outputs.size(0));
}

double over_one_rank(const Metric& metric, const at::Tensor& outputs, const at::Tensor& target) {
  return metric.value(metric.count(outputs, make_batch({}, target)), outputs.size(0));
}

TEST(TargetKindTest, RSquaredOfAConstantTargetIsOneOrZero) {
  const auto r2 = metric("r2");
  // The mean of 1000 times 0.1 is not exactly 0.1.
  const at::Tensor constant = at::full({1000, 1}, 0.1, at::kDouble);
  const at::Tensor varying = at::arange(1000, at::kDouble).unsqueeze(1);
  const struct {
    at::Tensor outputs, target;
    double expected;
  } cases[] = {{constant, constant, 1},
               {constant + 1, constant, 0},
               {at::cat({constant + 1, varying}, 1), at::cat({constant, varying}, 1), 0.5},
               {at::cat({varying, constant}, 1), at::cat({varying, constant}, 1), 1}};
  for (const auto& one : cases) {
    EXPECT_EQ(over_one_rank(*r2, one.outputs, one.target), one.expected);
    EXPECT_EQ(over_two_ranks(*r2, one.outputs, one.target), one.expected);
  }
}

TEST(TargetKindTest, LabelsAreTheTargetsAboveOneHalf) {
  const at::Tensor hard = at::tensor({1, 0, 0, 1, 1, 1, 0, 0}, at::kByte).view({4, 2});
  // 0.05 and 0.95
  const at::Tensor soft = hard.to(at::kDouble) * 0.9 + 0.05;
  const at::Tensor outputs = noise_tensor(1, {4, 2});
  const at::Tensor perfect = hard.to(at::kFloat) - 0.5;
  for (const char* name : {"map", "f1"}) {
    const auto of = metric(name);
    EXPECT_EQ(over_one_rank(*of, perfect, soft), 1) << name;
    EXPECT_LT(over_one_rank(*of, -perfect, soft), 1) << name;
    EXPECT_EQ(over_one_rank(*of, outputs, soft), over_one_rank(*of, outputs, hard)) << name;
    EXPECT_EQ(over_two_ranks(*of, outputs, soft), over_one_rank(*of, outputs, soft)) << name;
    EXPECT_EQ(over_one_rank(*of, perfect, at::full({4, 2}, 0.5)), 0) << name << ": no labels";
  }
}

}  // namespace
}  // namespace precast::test
