#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "tests/recipes/make_method.h"
#include "tests/recipes/recipe_golden.h"
#include "tests/recipes/toy_model.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

constexpr RunFacts kRun{.seed = 5, .epochs = 4, .steps_per_epoch = 5};

at::Tensor resized(const std::string& options, const at::Tensor& images, std::int64_t step) {
  const auto method = make_method("batch_resize", options);
  method->on_run(kRun);
  Batch batch{.fields = {{"image", images}, {"label", at::zeros({images.size(0)})}},
              .sample_ids = {}};
  method->on_batch(batch, step);
  return batch.images();
}

TEST(BatchResizeTest, SidesAreComposersInEveryStep) {
  for (const auto& golden : method_golden()["batch_resize"]["cases"]) {
    for (std::int64_t step = 0; step < 20; ++step) {
      const at::Tensor images = resized(golden["options"].dump(), at::zeros({2, 3, 96, 96}), step);
      const auto side = golden["sizes"][static_cast<std::size_t>(step)].get<std::int64_t>();
      EXPECT_EQ(images.sizes(), at::IntArrayRef({2, 3, side, side})) << step;
    }
  }
}

TEST(BatchResizeTest, ImagesOfFullSizeNeedNotBeAMultipleOfTheIncrement) {
  const at::Tensor images = at::zeros({2, 3, 90, 97});
  EXPECT_EQ(resized("{size_increment: 4}", images, /*step=*/0).sizes(),
            at::IntArrayRef({2, 3, 44, 48}));
  EXPECT_EQ(resized("{size_increment: 4}", images, /*step=*/19).sizes(), images.sizes());
}

TEST(BatchResizeTest, EachViewIsMadeSmallerAndOtherInputsAreKept) {
  const auto method = make_method("batch_resize", "{mode: crop}");
  method->on_run(kRun);
  const at::Tensor images = noise_tensor(4, {2, 3, 16, 16});
  Batch batch{.fields = {{"image", images}, {"view2", images}, {"size", at::zeros({2, 2})}},
              .sample_ids = {},
              .inputs = {0, 1, 2},
              .targets = {}};
  method->on_batch(batch, /*global_step=*/0);
  EXPECT_EQ(batch.input(0).sizes(), at::IntArrayRef({2, 3, 8, 8}));
  EXPECT_TRUE(batch.input(0).equal(batch.input(1)));
  EXPECT_EQ(batch.input(2).sizes(), at::IntArrayRef({2, 2}));
}

TEST(BatchResizeTest, AViewThatIsListedTwiceIsMadeSmallerOnce) {
  const auto method = make_method("batch_resize");
  method->on_run(kRun);
  Batch batch = make_batch(at::zeros({2, 3, 16, 16}), at::zeros({2}));
  batch.inputs = {0, 0};
  method->on_batch(batch, /*global_step=*/0);
  EXPECT_EQ(batch.images().sizes(), at::IntArrayRef({2, 3, 8, 8}));
}

TEST(BatchResizeTest, TheSmallestSideIsThatOfTheFirstStep) {
  for (const char* options :
       {"{}", "{initial_scale: 0.3, size_increment: 8}", "{delay_fraction: 0}",
        "{delay_fraction: 0, finetune_fraction: 1}", "{initial_scale: 1}"}) {
    for (const std::int64_t side : {28, 96, 225}) {
      EXPECT_EQ(make_method("batch_resize", options)->smallest_side(side),
                resized(options, at::zeros({1, 1, side, side}), /*step=*/0).size(3))
          << options << side;
    }
  }
}

TEST(BatchResizeTest, ASideIsNeverRoundedBelowOneIncrement) {
  for (const auto& [increment, side, smallest] :
       {std::tuple{4, 32, 16}, {32, 32, 32}, {64, 32, 32}, {32, 96, 64}, {100, 224, 100}}) {
    const std::string options = fmt::format("{{size_increment: {}}}", increment);
    EXPECT_EQ(make_method("batch_resize", options)->smallest_side(side), smallest) << options;
    EXPECT_EQ(resized(options, at::zeros({1, 1, side, side}), /*step=*/0).sizes(),
              at::IntArrayRef({1, 1, smallest, smallest}))
        << options;
  }
}

TEST(BatchResizeTest, TheHeightFollowsTheWidthAsComposers) {
  for (const auto& golden : method_golden()["batch_resize"]["oblong"]) {
    const auto size = golden.get<std::vector<std::int64_t>>();
    const at::Tensor images = resized("{}", at::zeros({1, 1, size[0], size[1]}), /*step=*/0);
    EXPECT_EQ(images.sizes(), at::IntArrayRef({1, 1, size[2], size[3]}));
  }
}

TEST(BatchResizeTest, TakesComposersPixels) {
  const at::Tensor small =
      resized("{initial_scale: 0.667}", noise_tensor(4, {1, 2, 12, 12}), /*step=*/0);
  expect_near(flat({small}), method_golden()["batch_resize"]["small"], 1e-7);
}

TEST(BatchResizeTest, ACropIsAPartOfTheImageThatSeedAndStepDecide) {
  const at::Tensor images =
      noise_tensor(4, {2, 3, 16, 16}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor crop = resized("{mode: crop}", images, 2);
  ASSERT_EQ(crop.sizes(), at::IntArrayRef({2, 3, 8, 8}));
  EXPECT_TRUE(crop.is_contiguous(at::MemoryFormat::ChannelsLast));
  int places = 0;
  for (std::int64_t top = 0; top <= 8; ++top) {
    for (std::int64_t left = 0; left <= 8; ++left)
      places += at::equal(images.narrow(2, top, 8).narrow(3, left, 8), crop) ? 1 : 0;
  }
  EXPECT_EQ(places, 1);
  EXPECT_TRUE(at::equal(crop, resized("{mode: crop}", images, 2)));
  EXPECT_FALSE(at::equal(crop, resized("{mode: crop}", images, 3)));
}

TEST(BatchResizeTest, RejectsFractionsThatSumToMoreThanOne) {
  TrainPlan plan;
  EXPECT_THROW(make_method("batch_resize", "{delay_fraction: 0.9}")->configure(plan), ConfigError);
}

}  // namespace
}  // namespace precast::test
