#include "data/torch/outside_source.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/image/normalize.h"
#include "data/outside/producer_error.h"
#include "framework/core/error.h"
#include "tests/data/outside/test_message.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"

namespace precast::data {
namespace {

using test::Names;
using test::TestBatch;
using ::testing::ThrowsMessage;

constexpr std::int64_t kSamples = 3, kSidePx = 4, kClasses = 5;

/// Delivers the batches that a test has put into it, then stops.
class PreparedBatches final : public OutsideBatches {
 public:
  void put(std::shared_ptr<TestBatch> made, std::optional<RingPosition> position) {
    const std::string name = "batch " + std::to_string(++count_);
    HostBatch host{.fields = made->fields, .sample_ids = {}, .memory = made};
    queue_.push_back({.host = std::move(host), .position = position, .name = name});
  }
  void begin(std::optional<RingPosition> position) override { first = position; }
  void skip(const RingPosition& at) override { skipped.push_back(at); }
  std::optional<OutsideBatch> next() override {
    if (queue_.empty()) return std::nullopt;
    OutsideBatch batch = std::move(queue_.front());
    queue_.pop_front();
    return batch;
  }

  std::optional<RingPosition> first;
  std::vector<RingPosition> skipped;

 private:
  std::deque<OutsideBatch> queue_;
  int count_ = 0;
};

class OutsideSourceTest : public ::testing::Test {
 protected:
  OutsideSourceTest() {
    spec_.batch_size = kSamples;
    spec_.batches = 2;
    spec_.classes.count = kClasses;
  }
  void put(std::optional<RingPosition> position, std::int64_t label = 1) {
    prepared_->put(std::make_shared<TestBatch>(kSamples, kSidePx, label), position);
  }
  BatchSource& source() {
    if (!source_) source_ = make_outside_source(std::move(owned_), spec_, at::kCPU, at::kFloat);
    return *source_;
  }
  void begin(std::int64_t epoch, std::int64_t batch = 0) {
    source().begin_epoch({.epoch = epoch, .first_batch = batch, .image_size_px = kSidePx});
  }

  OutsideSpec spec_ = make_image_spec(3);
  std::unique_ptr<PreparedBatches> owned_ = std::make_unique<PreparedBatches>();
  PreparedBatches* prepared_ = owned_.get();
  std::unique_ptr<BatchSource> source_;
};

TEST_F(OutsideSourceTest, PixelsAreNormalisedAndInChannelsLast) {
  put(RingPosition{}, /*label=*/4);
  begin(0);
  const auto batch = source().next();
  ASSERT_TRUE(batch);
  const at::Tensor& images = batch->images();
  EXPECT_EQ(images.sizes(), (at::IntArrayRef{kSamples, 3, kSidePx, kSidePx}));
  EXPECT_TRUE(images.is_contiguous(at::MemoryFormat::ChannelsLast));
  const Normalize normalize{NormalizeOptions{}};
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(images[2][static_cast<std::int64_t>(c)][1][3].item<float>(), normalize.f32()[c][7]);
  }
  EXPECT_TRUE(at::equal(batch->labels(), at::tensor({4, 4, 4}, at::kLong)));
}

TEST_F(OutsideSourceTest, FloatsAreTakenAsTheyAreAtAnyAlignment) {
  auto made = std::make_shared<TestBatch>(kSamples, kSidePx);
  constexpr std::size_t kValues = kSamples * kSidePx * kSidePx * 3;
  made->pixels.assign(kValues * sizeof(float) + 1, {});
  for (std::size_t i = 0; i < kValues; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(made->pixels.data() + 1 + i * sizeof value, &value, sizeof value);
  }
  made->fields[0].type = ElementType::f32;
  made->fields[0].data = made->pixels.data() + 1;
  prepared_->put(made, RingPosition{});
  begin(0);
  const auto batch = source().next();
  ASSERT_TRUE(batch);
  // Element [0, 1, 2, 3] of [N, C, H, W]; the message contains [N, H, W, C].
  EXPECT_EQ(batch->images()[0][1][2][3].item<float>(), (2 * kSidePx + 3) * 3 + 1);
}

TEST_F(OutsideSourceTest, APassHasTheNumberOfBatchesOfTheForm) {
  for (std::int64_t epoch = 0; epoch < 2; ++epoch)
    for (std::int64_t batch = 0; batch < 2; ++batch) put(RingPosition{epoch, batch});
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    begin(epoch);
    EXPECT_TRUE(source().next());
    EXPECT_TRUE(source().next());
    EXPECT_FALSE(source().next());
  }
  EXPECT_EQ(source().size(1), 2);
  EXPECT_EQ(source().samples(), 2 * kSamples);
}

TEST_F(OutsideSourceTest, ABatchThatIsNotTheNextOneIsAnErrorWithBothPositions) {
  put(RingPosition{});
  put(RingPosition{.epoch = 0, .batch = 7});
  begin(0);
  EXPECT_TRUE(source().next());
  EXPECT_THAT([&] { static_cast<void>(source().next()); },
              ThrowsMessage<ProducerError>(Names("batch 2", "batch 1", "batch 7")));
}

TEST_F(OutsideSourceTest, AnEpochThatIsTooShortIsAnError) {
  put(RingPosition{});
  put(RingPosition{.epoch = 1, .batch = 0});
  begin(0);
  EXPECT_TRUE(source().next());
  EXPECT_THROW(static_cast<void>(source().next()), ProducerError);
}

TEST_F(OutsideSourceTest, AnEpochThatIsTooLongIsCutWithOneWarningThatNamesBothNumbers) {
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t batch = 0; batch < 7; ++batch)
      put(RingPosition{epoch, batch}, /*label=*/epoch);
  testing::internal::CaptureStderr();
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    begin(epoch);
    for (int i = 0; i < 2; ++i) {
      const auto batch = source().next();
      EXPECT_TRUE(batch && batch->labels()[0].item<std::int64_t>() == epoch) << epoch;
    }
    EXPECT_FALSE(source().next());
  }
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, Names("data.batches_per_epoch", 2, 7, "epoch 0"));
  EXPECT_EQ(test::occurrences(logged, "data.batches_per_epoch"), 1) << logged;
}

TEST_F(OutsideSourceTest, AResumedRunSkipsToItsBatch) {
  put(RingPosition{});
  put(RingPosition{.epoch = 0, .batch = 1});
  put(RingPosition{.epoch = 1, .batch = 0}, /*label=*/2);
  put(RingPosition{.epoch = 1, .batch = 1}, /*label=*/3);
  begin(1, 1);
  EXPECT_EQ(prepared_->first, (RingPosition{.epoch = 1, .batch = 1}));
  const auto batch = source().next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->labels()[0].item<std::int64_t>(), 3);
  EXPECT_EQ(prepared_->skipped, (std::vector<RingPosition>{{0, 0}, {0, 1}, {1, 0}}));
  EXPECT_FALSE(source().next());
}

TEST_F(OutsideSourceTest, AResumedRunRefusesBatchesWithoutNumbers) {
  put(std::nullopt);
  begin(0, 1);
  EXPECT_THAT([&] { static_cast<void>(source().next()); },
              ThrowsMessage<CheckpointError>(Names("epoch 0", "batch 1")));
}

TEST_F(OutsideSourceTest, AResumedRunAcceptsThemIfItIsForced) {
  spec_.accepts_unnumbered = true;
  put(std::nullopt);
  begin(0, 1);
  EXPECT_TRUE(source().next());
}

TEST_F(OutsideSourceTest, NumbersAreInAllBatchesOrInNone) {
  put(std::nullopt);
  put(RingPosition{.epoch = 0, .batch = 1});
  begin(0);
  EXPECT_TRUE(source().next());
  EXPECT_THROW(static_cast<void>(source().next()), ProducerError);
}

TEST_F(OutsideSourceTest, TheRestOfAPassThatIsLeftIsSkipped) {
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t batch = 0; batch < 2; ++batch)
      put(RingPosition{epoch, batch}, /*label=*/epoch);
  testing::internal::CaptureStderr();
  for (const std::int64_t epoch : {0, 2}) {
    begin(epoch);
    const auto batch = source().next();
    EXPECT_TRUE(batch && batch->labels()[0].item<std::int64_t>() == epoch) << epoch;
  }
  EXPECT_EQ(test::occurrences(testing::internal::GetCapturedStderr(), "data.batches_per_epoch"), 0);
}

TEST_F(OutsideSourceTest, ABatchThatIsSentAgainInALaterPassIsAnError) {
  put(RingPosition{});
  put(RingPosition{});
  begin(0);
  EXPECT_TRUE(source().next());
  begin(1);
  EXPECT_THAT([&] { static_cast<void>(source().next()); },
              ThrowsMessage<ProducerError>(Names("batch 2", "epoch 1", "epoch 0")));
}

TEST_F(OutsideSourceTest, BatchesCannotBeReadAgain) {
  put(RingPosition{});
  begin(0);
  EXPECT_TRUE(source().next());
  EXPECT_THROW(begin(0), ProducerError);
}

TEST_F(OutsideSourceTest, ALabelOutOfRangeIsAnErrorThatNamesTheBatch) {
  put(RingPosition{}, kClasses);
  begin(0);
  EXPECT_THAT([&] { static_cast<void>(source().next()); },
              ThrowsMessage<ProducerError>(Names("batch 1", kClasses)));
}

TEST_F(OutsideSourceTest, MasksAreCopiedAndChecked) {
  spec_.outputs.push_back({.name = "mask", .type = ElementType::u8, .kind = MaskOutput{}});
  spec_.targets = {2};
  spec_.classes.ignored = 255;
  const auto put_masks = [&](std::int64_t number, std::uint8_t last) {
    auto made = std::make_shared<TestBatch>(kSamples, kSidePx);
    auto mask = std::make_shared<std::vector<std::byte>>(kSamples * kSidePx * kSidePx,
                                                         std::byte{kClasses - 1});
    mask->front() = std::byte{255};
    mask->back() = std::byte{last};
    made->fields.push_back({.name = "mask",
                            .type = ElementType::u8,
                            .shape = {kSamples, kSidePx, kSidePx},
                            .data = mask->data()});
    prepared_->put(made, RingPosition{.epoch = 0, .batch = number});
    return mask;
  };
  const auto valid = put_masks(0, 0);
  const auto invalid = put_masks(1, kClasses);
  begin(0);
  const auto batch = source().next();
  ASSERT_TRUE(batch);
  // The producer's memory may change after the check.
  valid->back() = std::byte{kClasses};
  EXPECT_EQ(batch->target().flatten()[-1].item<int>(), 0);
  EXPECT_EQ(batch->target().flatten()[0].item<int>(), 255);
  EXPECT_THAT([&] { static_cast<void>(source().next()); },
              ThrowsMessage<ProducerError>(Names("batch 2", "mask", kClasses, 255, kSamples - 1)));
}

TEST_F(OutsideSourceTest, AnotherImageSizeIsAnError) {
  put(RingPosition{});
  source().begin_epoch({.epoch = 0, .image_size_px = kSidePx + 1});
  EXPECT_THROW(static_cast<void>(source().next()), ProducerError);
}

TEST_F(OutsideSourceTest, MeasurementsTakeBatchesWithAnyNumbers) {
  spec_.checks_positions = false;
  put(RingPosition{.epoch = 3, .batch = 4});
  put(std::nullopt);
  begin(0);
  EXPECT_FALSE(prepared_->first);
  EXPECT_TRUE(source().next());
  EXPECT_TRUE(source().next());
}

TEST_F(OutsideSourceTest, AStoppedWaitEndsThePassEarly) {
  begin(0);
  EXPECT_FALSE(source().next());
}

}  // namespace
}  // namespace precast::data
