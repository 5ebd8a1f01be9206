#include "framework/api/batch.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "tests/support/message_matchers.h"

namespace precast {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Four samples with the inputs `left` and `right` and the target `class`.
Batch two_views() {
  return {.fields = {{"left", at::arange(8, at::kFloat).view({4, 2})},
                     {"class", at::tensor({3, 2, 1, 0}, at::kLong)},
                     {"right", -at::arange(4, at::kFloat)}},
          .sample_ids = {10, 11, 12, 13},
          .inputs = {0, 2},
          .targets = {1}};
}

TEST(BatchTest, InputsAndTargetsAreFieldsInTheRecipesOrder) {
  const Batch batch = two_views();
  EXPECT_EQ(batch.size(), 4);
  EXPECT_EQ(batch.input(0).sizes(), at::IntArrayRef({4, 2}));
  EXPECT_EQ(batch.input(1)[3].item<float>(), -3);
  EXPECT_EQ(batch.target()[0].item<std::int64_t>(), 3);
  EXPECT_THROW((void)batch.input(2), std::out_of_range);
}

TEST(BatchTest, ATargetThatIsNotThereIsNamedWithItsKey) {
  Batch batch = two_views();
  batch.targets.clear();
  EXPECT_THAT([&] { (void)batch.target(); },
              ThrowsMessage<ConfigError>(test::Names("data.targets")));
  EXPECT_TRUE(batch.narrow(1, 2).targets.empty());
}

TEST(BatchTest, FieldsAreFoundByName) {
  const Batch batch = two_views();
  EXPECT_EQ(batch.field("right")[1].item<float>(), -1);
  EXPECT_THAT([&] { (void)batch.field("rihgt"); },
              ThrowsMessage<ConfigError>(test::Names("rihgt", "right")));
}

TEST(BatchTest, NarrowCutsEveryFieldAndTheIdsWithoutACopy) {
  const Batch batch = two_views();
  const Batch part = batch.narrow(1, 2);
  EXPECT_EQ(part.size(), 2);
  EXPECT_THAT(part.sample_ids, ElementsAre(11, 12));
  EXPECT_EQ(part.target()[0].item<std::int64_t>(), 2);
  EXPECT_EQ(part.input(1).const_data_ptr<float>(), batch.input(1).const_data_ptr<float>() + 1);
}

TEST(BatchTest, IndexSelectTakesSamplesOfEveryField) {
  const Batch chosen = two_views().index_select(at::tensor({3, 0}, at::kLong));
  EXPECT_THAT(chosen.sample_ids, IsEmpty());
  EXPECT_EQ(chosen.input(0)[0][1].item<float>(), 7);
  EXPECT_EQ(chosen.target()[1].item<std::int64_t>(), 3);
  EXPECT_EQ(chosen.input(1)[0].item<float>(), -3);
}

TEST(BatchTest, SelectedImagesKeepTheirLayout) {
  const at::Tensor images = at::zeros({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast);
  const Batch chosen = make_batch(images).index_select(at::tensor({1, 2}, at::kLong));
  EXPECT_TRUE(chosen.images().is_contiguous(at::MemoryFormat::ChannelsLast));
  Batch plain = chosen;
  make_inputs_contiguous(plain);
  EXPECT_TRUE(plain.images().is_contiguous());
}

}  // namespace
}  // namespace precast
