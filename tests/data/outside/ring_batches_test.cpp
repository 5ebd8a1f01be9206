#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "data/outside/outside_batches.h"
#include "data/outside/producer_error.h"
#include "data/ring/producer.h"
#include "tests/data/ring/numbered_batches.h"
#include "tests/data/ring/silent_producer.h"
#include "tests/support/message_matchers.h"
#include "tests/support/program.h"

namespace precast::data {
namespace {

using namespace std::chrono_literals;
using test::Names;
using test::NumberedBatches;
using ::testing::ThrowsMessage;

class RingBatchesTest : public ::testing::Test {
 protected:
  RingBatchesTest() {
    static int count = 0;
    name_ = "outside-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    ring_ = std::make_unique<RingProducer>(NumberedBatches::options(name_, /*slots=*/8));
    batches_.emplace(*ring_);
  }
  void publish(std::int64_t epoch, std::int64_t batch) {
    EXPECT_TRUE(ring_->publish(epoch, batch, batches_->make(epoch, batch)));
  }
  [[nodiscard]] std::unique_ptr<OutsideBatches> open(std::optional<RingPosition> first,
                                                     OutsideOptions options = {}) const {
    auto batches = open_outside_batches("ring://" + name_, std::move(options));
    batches->begin(first);
    return batches;
  }
  void expect(OutsideBatches& batches, std::int64_t epoch, std::int64_t batch) const {
    const auto next = batches.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->position, (RingPosition{.epoch = epoch, .batch = batch}));
    EXPECT_TRUE(NumberedBatches::is_correct(next->host, epoch, batch));
    EXPECT_THAT(next->name, Names(name_, epoch, batch));
  }

  std::string name_;
  std::unique_ptr<RingProducer> ring_;
  std::optional<NumberedBatches> batches_;
};

TEST_F(RingBatchesTest, BatchesOfAllPassesHaveTheirPositions) {
  const auto batches = open(RingPosition{});
  publish(0, 0);
  publish(0, 1);
  ring_->end_pass(0, 2);
  publish(1, 0);
  ring_->end_pass(1, 1);
  ring_->finish();
  expect(*batches, 0, 0);
  expect(*batches, 0, 1);
  expect(*batches, 1, 0);
  EXPECT_THAT([&] { static_cast<void>(batches->next()); },
              ThrowsMessage<ProducerError>(Names(name_)));
}

TEST_F(RingBatchesTest, TheFirstBatchIsTheOneThatIsNeeded) {
  publish(0, 0);
  publish(0, 1);
  publish(0, 2);
  const auto batches = open(RingPosition{.epoch = 0, .batch = 2});
  expect(*batches, 0, 2);
}

TEST_F(RingBatchesTest, WithoutAPositionAnyCompletePassIsAccepted) {
  const auto batches = open(std::nullopt);
  publish(3, 0);
  expect(*batches, 3, 0);
}

TEST_F(RingBatchesTest, AProducerThatHasPassedTheBatchIsAnError) {
  const auto first = open(RingPosition{});
  for (std::int64_t batch = 0; batch < 10; ++batch) {
    publish(0, batch);
    expect(*first, 0, batch);
  }
  try {
    static_cast<void>(open(RingPosition{}));
    FAIL() << "expected an error";
  } catch (const ProducerError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::loader);
    EXPECT_THAT(error.what(), Names(name_));
  }
}

TEST_F(RingBatchesTest, ADeadProducerIsAnErrorOfTheProducer) {
  const auto batches = open(RingPosition{});
  publish(0, 0);
  expect(*batches, 0, 0);
  batches_.reset();
  ring_.reset();
  try {
    static_cast<void>(batches->next());
    FAIL() << "expected an error";
  } catch (const ProducerError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::loader);
  }
}

TEST_F(RingBatchesTest, TheProducersOwnErrorKeepsItsExitCode) {
  const auto batches = open(RingPosition{});
  ring_->fail(DataError("sample 9 is damaged"));
  try {
    static_cast<void>(batches->next());
    FAIL() << "expected an error";
  } catch (const ProducerError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::dataset_invalid);
    EXPECT_THAT(error.what(), Names("sample 9"));
  }
}

TEST_F(RingBatchesTest, BatchesThatAreSkippedAreInTheErrorOfATimeout) {
  // On a busy machine, a short time limit may pass before the second batch arrives.
  std::int64_t epoch = 2;
  for (std::chrono::milliseconds limit = 300ms;; limit *= 4, ++epoch) {
    ASSERT_LT(limit, 5min);
    testing::internal::CaptureStderr();
    const auto late = open(RingPosition{.epoch = 30, .batch = 1}, {.timeout = limit});
    publish(epoch, 0);
    publish(epoch, 1);
    ring_->end_pass(epoch, 2);
    std::string message;
    ExitCode code = ExitCode::done;
    try {
      static_cast<void>(late->next());
    } catch (const Error& error) {
      code = error.exit_code();
      message = error.what();
    }
    const std::string logged = testing::internal::GetCapturedStderr();
    EXPECT_EQ(code, ExitCode::stalled);
    const std::string first = fmt::format("epoch {} batch 0", epoch);
    if (!Names(name_, "epoch 30 batch 1", 2, first, fmt::format("epoch {} batch 1", epoch))
             .MatchAndExplain(message, nullptr))
      continue;
    EXPECT_EQ(test::occurrences(logged, name_), 1) << logged;
    EXPECT_THAT(logged, Names(first, "epoch 30 batch 1"));
    return;
  }
}

TEST_F(RingBatchesTest, ARunThatSkipsCanBeAskedToStop) {
  const auto stopped = open(RingPosition{.epoch = 1, .batch = 0}, {.stopped = [] { return true; }});
  publish(0, 0);
  ring_->end_pass(0, 1);
  publish(1, 0);
  EXPECT_FALSE(stopped->next());
}

TEST_F(RingBatchesTest, AWaitForTheProducerEndsWhenTheRunIsAskedToStop) {
  const auto batches =
      open_outside_batches("ring://" + name_ + "-absent", {.stopped = [] { return true; }});
  batches->begin(RingPosition{});
  EXPECT_FALSE(batches->next());
}

TEST_F(RingBatchesTest, AWaitForAProducerThatHangsEndsWhenTheRunIsAskedToStop) {
  const test::SilentProducer producer(name_ + "-silent");
  const auto batches =
      open_outside_batches("ring://" + name_ + "-silent", {.stopped = [] { return true; }});
  batches->begin(RingPosition{});
  EXPECT_FALSE(batches->next());
}

TEST_F(RingBatchesTest, AWaitEndsAtItsLimitOrWhenTheRunIsAskedToStop) {
  const auto limited = open(RingPosition{}, {.timeout = 300ms});
  try {
    static_cast<void>(limited->next());
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::stalled);
    EXPECT_THAT(error.what(), Names(name_, "0.3", "data.producer_timeout_s"));
  }
  const auto stopped = open(RingPosition{}, {.stopped = [] { return true; }});
  EXPECT_FALSE(stopped->next());
}

}  // namespace
}  // namespace precast::data
