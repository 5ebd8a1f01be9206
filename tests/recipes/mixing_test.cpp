#include "recipes/methods/mixing.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "framework/core/error.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/message_matchers.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

constexpr std::int64_t kClasses = 5;

/// All pixels of image i have the value i.
Batch numbered_batch(std::int64_t samples, std::vector<std::int64_t> labels,
                     at::ScalarType dtype = at::kFloat) {
  at::Tensor images = at::zeros({samples, 3, 8, 12}, at::kFloat);
  images.add_(at::arange(samples, at::kFloat).view({samples, 1, 1, 1}));
  Batch batch;
  batch.fields = {{"image", images.to(dtype).contiguous(at::MemoryFormat::ChannelsLast)},
                  {"label", at::tensor(labels, at::kLong)}};
  batch.sample_ids.assign(static_cast<std::size_t>(samples), 0);
  return batch;
}

std::unique_ptr<Method> method(const std::string& name, const std::string& options = "{}",
                               const RunFacts& run = {.seed = 3, .num_classes = kClasses}) {
  auto made = make_method(name, options);
  made->on_run(run);
  return made;
}

void expect_sums_of_one(const at::Tensor& labels) {
  for (std::int64_t i = 0; i < labels.size(0); ++i)
    EXPECT_NEAR(labels[i].sum().item<float>(), 1, 1e-6) << i;
}

/// The batch that torchvision mixed: four images of noise, labels as probabilities.
Batch golden_batch() {
  const at::Tensor labels = at::tensor(std::vector<std::int64_t>{0, 1, 1, 4});
  return {.fields = {{"image", noise_tensor(6, {4, 3, 8, 12}, 4)},
                     {"label", recipes::class_probabilities(labels, kClasses)}},
          .sample_ids = std::vector<std::uint64_t>(4)};
}

TEST(MixingTest, MixesAsTorchvisionDoesWithTheSameDraws) {
  const nlohmann::json& golden = method_golden()["mixing"];
  for (const auto& item : golden["mixup"]) {
    Batch batch = golden_batch();
    recipes::mix_up(batch, item["share"].get<double>());
    expect_near(flat({batch.images()}), item["images"], 1e-6);
    expect_near(flat({batch.labels()}), item["labels"], 1e-6);
  }
  for (const auto& item : golden["cutmix"]) {
    Batch batch = golden_batch();
    recipes::cut_mix(batch, item["share"].get<double>(), item["x"].get<std::int64_t>(),
                     item["y"].get<std::int64_t>());
    expect_near(flat({batch.images()}), item["images"], 1e-7);
    expect_near(flat({batch.labels()}), item["labels"], 1e-6);
  }
}

/// The operation that was applied to a batch of two images (image i has pixels and label i):
/// "none", "mixup" or "cutmix"; and the share of its original label that the second image keeps.
std::pair<std::string, double> kind_of(Batch& batch) {
  const double own = batch.labels()[1][1].item<double>();
  const at::Tensor row = batch.images()[1][0];
  const auto least = row.min().item<float>(), most = row.max().item<float>();
  if (least != most || least == 0) return {"cutmix", own};
  // An empty box also leaves the image unchanged; a share of exactly 1 is very rare.
  return {most == 1 ? "none" : "mixup", own};
}

TEST(MixupOrCutmixTest, ChoosesAsOftenAsTimm) {
  for (const auto& golden : method_golden()["mixing"]["choices"]) {
    const nlohmann::json options = {{"mixup_alpha", 1},
                                    {"probability", golden["probability"]},
                                    {"cutmix_share", golden["cutmix_share"]}};
    const auto mixing = method("mixup_or_cutmix", options.dump());
    std::map<std::string, double> counts, shares;
    constexpr std::int64_t kSteps = 4000;
    const at::Tensor images = at::arange(2, at::kFloat).view({2, 1, 1, 1}).expand({2, 1, 64, 64});
    for (std::int64_t step = 0; step < kSteps; ++step) {
      Batch batch{.fields = {{"image", images.contiguous()}, {"label", at::arange(2)}},
                  .sample_ids = std::vector<std::uint64_t>(2)};
      mixing->on_batch(batch, step);
      const auto [kind, own] = kind_of(batch);
      counts[kind] += 1;
      shares[kind] += own;
    }
    // 0.04 is five standard deviations of 4000 draws. 0.1 % of the boxes are empty.
    for (const auto& [kind, frequency] : golden["frequencies"].items())
      EXPECT_NEAR(counts[kind] / kSteps, frequency.get<double>(), 0.04) << kind;
    for (const auto& [kind, own] : golden["own"].items())
      EXPECT_NEAR(shares[kind] / counts[kind], own.get<double>(), 0.05) << kind;
  }
}

TEST(MixupTest, ImagesAndLabelsAreTheSameMixture) {
  for (const bool same : {true, false}) {
    Batch batch = numbered_batch(4, {0, 1, 1, 4});
    method("mixup", same ? "{alpha: 1}" : "{alpha: 1, same_lambda: false}")->on_batch(batch, 7);
    EXPECT_EQ(batch.labels().sizes(), (std::vector<std::int64_t>{4, kClasses}));
    EXPECT_TRUE(batch.images().is_contiguous(at::MemoryFormat::ChannelsLast));
    expect_sums_of_one(batch.labels());
    std::set<float> shares;
    const std::int64_t own_class[] = {0, 1, 1, 4};
    for (std::int64_t i = 0; i < 4; ++i) {
      // l * i + (1 - l) * (i - 1); the partner of the first image is the last one.
      const auto own = static_cast<float>(i);
      const float partner = i == 0 ? 3.0F : own - 1;
      const auto value = batch.images()[i][0][0][0].item<float>();
      const float share = (value - partner) / (own - partner);
      EXPECT_EQ(batch.images()[i].min().item<float>(), batch.images()[i].max().item<float>());
      if (i != 2) {
        EXPECT_NEAR(batch.labels()[i][own_class[i]].item<float>(), share, 1e-5);
      }
      shares.insert(std::round(share * 1e4F));
    }
    EXPECT_EQ(shares.size(), same ? 1U : 4U);
    // If a sample and its partner have the same class, that class has probability 1.
    EXPECT_NEAR(batch.labels()[2][1].item<float>(), 1, 1e-6);
  }
}

TEST(MixingTest, IsAFunctionOfSeedStepAndRank) {
  const std::pair<const char*, const char*> methods[] = {{"mixup", "{alpha: 1}"},
                                                         {"mixup_or_cutmix", "{mixup_alpha: 1}"}};
  for (const auto& [name, options] : methods) {
    const auto mixed = [&, name = name, options = options](const RunFacts& run, std::int64_t step) {
      Batch batch = numbered_batch(4, {0, 1, 2, 4});
      method(name, options, run)->on_batch(batch, step);
      return batch.labels();
    };
    const RunFacts run{.seed = 3, .rank = 0, .num_classes = kClasses};
    EXPECT_TRUE(at::equal(mixed(run, 7), mixed(run, 7))) << name;
    EXPECT_FALSE(at::equal(mixed(run, 7), mixed(run, 8))) << name;
    EXPECT_FALSE(at::equal(mixed(run, 7), mixed({.seed = 4, .num_classes = kClasses}, 7))) << name;
    EXPECT_FALSE(
        at::equal(mixed(run, 7), mixed({.seed = 3, .rank = 1, .num_classes = kClasses}, 7)))
        << name;
  }
}

/// The batch of a rank in a run with this many repeats: all images of a sample have the number of
/// that sample as pixels and as label. @param first the position of the batch in the order
Batch batch_with_repeats(std::int64_t first, std::int64_t rows, const RunFacts& run) {
  std::vector<std::int64_t> labels;
  for (std::int64_t row = 0; row < rows; ++row)
    labels.push_back((first + row * run.world + run.rank) / run.repeats);
  Batch batch = numbered_batch(rows, labels);
  const at::Tensor values = at::tensor(labels, at::kFloat).view({rows, 1, 1, 1});
  batch.images() = values.expand({rows, 3, 8, 12}).contiguous();
  return batch;
}

TEST(MixingTest, NoSampleIsMixedWithItsOwnRepeats) {
  const RunFacts runs[] = {
      {.seed = 3, .num_classes = kClasses, .repeats = 4},
      {.seed = 3, .rank = 1, .world = 2, .num_classes = kClasses, .repeats = 4},
      {.seed = 3, .rank = 1, .world = 3, .num_classes = kClasses, .repeats = 4},
      {.seed = 3, .world = 4, .num_classes = kClasses, .repeats = 4}};
  for (const RunFacts& run : runs) {
    for (const std::int64_t first : {0, 3}) {  // 3: the batch starts with the last repeat
      const std::int64_t rows = 16 / run.world;
      for (const char* name : {"mixup", "cutmix", "mixup_or_cutmix"}) {
        // A sample that is mixed with itself keeps the probability 1 in every step; one that is
        // mixed with another sample keeps it only where the box is empty.
        float least = 1;
        for (std::int64_t step = 0; step < 20; ++step) {
          Batch batch = batch_with_repeats(first, rows, run);
          method(name, "{}", run)->on_batch(batch, step);
          least = std::min(least, batch.labels().max().item<float>());
        }
        EXPECT_LT(least, 1) << name << ", world " << run.world << ", from " << first;
      }
    }
  }
}

TEST(MixingTest, AFewRowsHaveThePartnersAtHalfTheirNumber) {
  const at::Tensor rows = at::arange(5);
  const auto expect = [&](std::int64_t count, std::int64_t distance,
                          const std::vector<std::int64_t>& partners) {
    EXPECT_TRUE(at::equal(recipes::partners(rows.narrow(0, 0, count), distance),
                          at::tensor(partners, at::kLong)))
        << count << " " << distance;
  };
  expect(5, 1, {4, 0, 1, 2, 3});
  expect(5, 2, {3, 4, 0, 1, 2});
  expect(5, 9, {3, 4, 0, 1, 2});
  expect(2, 4, {1, 0});
  expect(1, 4, {0});
}

TEST(MixupTest, ABatchOfOneAndHalfImagesAreMixedToo) {
  Batch one = numbered_batch(1, {2});
  method("mixup")->on_batch(one, 0);
  EXPECT_NEAR(one.labels()[0][2].item<float>(), 1, 1e-6);
  EXPECT_EQ(one.images().abs().max().item<float>(), 0);
  Batch half = numbered_batch(3, {2, 1, 0}, at::kHalf);
  method("mixup")->on_batch(half, 0);
  EXPECT_EQ(half.images().scalar_type(), at::kHalf);
  EXPECT_EQ(half.labels().scalar_type(), at::kFloat);
}

TEST(MixupTest, LeavesTheLoadersMemoryAloneAndUnmixedBatchesAsProbabilities) {
  for (const std::string name : {"mixup", "cutmix", "mixup_or_cutmix"}) {
    Batch batch = numbered_batch(4, {0, 1, 2, 4});
    const at::Tensor images = batch.images();
    const at::Tensor before = images.clone();
    method(name)->on_batch(batch, 3);
    EXPECT_TRUE(at::equal(images, before)) << name;
    Batch unmixed = numbered_batch(4, {0, 1, 2, 4});
    method(name, "{probability: 1e-12}")->on_batch(unmixed, 3);
    EXPECT_TRUE(at::equal(unmixed.images(), before)) << name;
    EXPECT_EQ(unmixed.labels().sum().item<float>(), 4) << name;
    EXPECT_EQ(unmixed.labels()[3][4].item<float>(), 1) << name;
  }
}

TEST(MixupTest, WhatMixesNoBatchLeavesTheLabelsAsTheyAre) {
  for (const char* name : {"mixup", "cutmix", "mixup_or_cutmix"}) {
    Batch batch = numbered_batch(4, {0, 1, 2, 4});
    method(name, "{probability: 0}")->on_batch(batch, 3);
    EXPECT_EQ(batch.labels().scalar_type(), at::kLong) << name;
  }
}

TEST(CutmixTest, LabelsFollowTheAreaOfOneBox) {
  double own_sum = 0;
  constexpr int kSteps = 300;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    Batch batch = numbered_batch(3, {0, 1, 2});
    method("cutmix")->on_batch(batch, step);
    expect_sums_of_one(batch.labels());
    const at::Tensor from_partner = batch.images()[1][0].eq(0.0F);
    const double area = from_partner.sum().item<double>();
    const double own = batch.labels()[1][1].item<double>();
    ASSERT_NEAR(own, 1 - area / 96, 1e-6) << step;
    // The pixels of the partner form one rectangle: their number is rows times columns.
    const double rows = from_partner.any(1).sum().item<double>();
    const double columns = from_partner.any(0).sum().item<double>();
    ASSERT_EQ(area, rows * columns) << step;
    EXPECT_TRUE(at::equal(batch.images()[2][0].eq(1.0F), from_partner));
    own_sum += own;
  }
  // The mean is slightly above one half, because boxes are clipped at the border and rounded down
  // to whole pixels.
  EXPECT_GT(own_sum / kSteps, 0.5);
  EXPECT_LT(own_sum / kSteps, 0.8);
}

TEST(CutmixTest, MixesProbabilitiesThatMixupLeft) {
  Batch batch = numbered_batch(4, {0, 1, 2, 4});
  method("mixup")->on_batch(batch, 5);
  method("cutmix")->on_batch(batch, 5);
  expect_sums_of_one(batch.labels());
}

/// numbered_batch() with more inputs: a copy of the images, and images of half the size.
Batch batch_of_views() {
  Batch batch = numbered_batch(4, {0, 1, 2, 4});
  batch.fields.push_back({"view2", batch.images().clone()});
  batch.fields.push_back({"small", batch.images().narrow(2, 0, 4).narrow(3, 0, 6).clone()});
  batch.inputs = {0, 2, 3};
  return batch;
}

TEST(MixingTest, EachInputIsMixedLikeTheFirst) {
  for (const char* name : {"mixup", "cutmix"}) {
    for (std::int64_t step = 0; step < 20; ++step) {
      Batch alone = numbered_batch(4, {0, 1, 2, 4});
      Batch batch = batch_of_views();
      method(name)->on_batch(alone, step);
      method(name)->on_batch(batch, step);
      EXPECT_TRUE(at::equal(batch.input(0), alone.input(0))) << name << step;
      EXPECT_TRUE(at::equal(batch.input(1), alone.input(0))) << name << step;
      EXPECT_TRUE(at::equal(batch.labels(), alone.labels())) << name << step;
    }
  }
}

TEST(MixupTest, EachSampleOfEachInputHasTheShareOfItsLabel) {
  Batch batch = batch_of_views();
  method("mixup", "{alpha: 1, same_lambda: false}")->on_batch(batch, 7);
  for (std::int64_t i = 1; i < 4; ++i) {
    const double own = batch.labels()[i][i == 3 ? 4 : i].item<double>();
    for (const std::size_t input : {0, 1, 2}) {
      const double value = batch.input(input)[i].mean().item<double>();
      EXPECT_NEAR(value, static_cast<double>(i) - (1 - own), 1e-5) << i << " of " << input;
    }
  }
}

TEST(CutmixTest, TheBoxIsScaledToTheSizeOfEachInput) {
  Batch batch = batch_of_views();
  batch.labels() = recipes::class_probabilities(batch.labels(), kClasses);
  // The box has half of each side: rows 2 to 5 and columns 3 to 8 of 8 x 12.
  recipes::cut_mix(batch, /*share=*/0.75, /*x=*/6, /*y=*/4);
  at::Tensor box = at::zeros({8, 12}, at::kBool);
  box.narrow(0, 2, 4).narrow(1, 3, 6).fill_(true);
  at::Tensor small = at::zeros({4, 6}, at::kBool);
  small.narrow(0, 1, 2).narrow(1, 2, 2).fill_(true);
  EXPECT_TRUE(at::equal(batch.input(0)[1][0].eq(0), box));
  EXPECT_TRUE(at::equal(batch.input(1)[1][0].eq(0), box));
  EXPECT_TRUE(at::equal(batch.input(2)[1][0].eq(0), small));
  EXPECT_NEAR(batch.labels()[1][1].item<double>(), 0.75, 1e-6);
}

TEST(MixingTest, AnInputThatIsListedTwiceIsMixedOnce) {
  for (const char* name : {"mixup", "cutmix"}) {
    Batch once = numbered_batch(4, {0, 1, 2, 4});
    Batch twice = numbered_batch(4, {0, 1, 2, 4});
    twice.inputs = {0, 0};
    method(name)->on_batch(once, 7);
    method(name)->on_batch(twice, 7);
    EXPECT_TRUE(at::equal(once.images(), twice.images())) << name;
  }
}

TEST(MixingTest, InputsThatCannotBeMixedAreErrorsThatNameThem) {
  const auto with = [](at::Tensor input) {
    Batch batch = numbered_batch(4, {0, 1, 2, 4});
    batch.fields.push_back({"words", std::move(input)});
    batch.inputs = {0, 2};
    return batch;
  };
  EXPECT_THAT(
      [&] {
        Batch batch = with(at::zeros({4, 9}, at::kLong));
        method("mixup")->on_batch(batch, 0);
      },
      ::testing::ThrowsMessage<ConfigError>(Names("mixup", "'words'", "Long", "data.inputs")));
  EXPECT_THAT(
      [&] {
        Batch batch = with(at::zeros({4, 9}));
        method("cutmix")->on_batch(batch, 0);
      },
      ::testing::ThrowsMessage<ConfigError>(Names("cutmix", "'words'", 2, "data.inputs")));
}

TEST(MixingTest, WrongOptionsAreRefused) {
  EXPECT_THROW((void)make_method("mixup", "{alpha: 0}"), ConfigError);
  EXPECT_THROW((void)make_method("cutmix", "{probability: 2}"), ConfigError);
}

}  // namespace
}  // namespace precast::test
