#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

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
  EXPECT_EQ(of(logits), 0) << "no pixel counts";
}

TEST(TargetKindTest, RSquaredOfLargeNumbersIsExact) {
  const at::Tensor target = at::tensor({1e8 + 1, 1e8 + 2, 1e8 + 3}, at::kDouble);
  const at::Tensor outputs = at::tensor({1e8 + 1, 1e8 + 2, 1e8 + 4}, at::kDouble).view({3, 1});
  const auto r2 = metric("r2");
  EXPECT_DOUBLE_EQ(r2->value(r2->count(outputs, make_batch({}, target)), 3), 0.5);
  EXPECT_TRUE(std::isnan(
      r2->value(r2->count(outputs.narrow(0, 0, 1), make_batch({}, target.narrow(0, 0, 1))), 1)));
}

}  // namespace
}  // namespace precast::test
