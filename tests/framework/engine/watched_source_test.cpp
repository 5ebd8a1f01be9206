#include "framework/engine/watched_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/support/program.h"

namespace precast::engine {
namespace {

constexpr double kBefore = 40;

/// next() waits until `held` is false, and then adds 2 s to seconds_waited().
class HeldSource final : public BatchSource {
 public:
  void begin_epoch(const EpochRequest& /*request*/) override { waited_ = kBefore; }
  std::optional<Batch> next() override {
    in_next.store(true);
    held.wait(true);
    in_next.store(false);
    waited_ += 2;
    if (fails) throw std::runtime_error("disk 7");
    return std::nullopt;
  }
  [[nodiscard]] std::int64_t size(int /*world*/) const override { return 3; }
  [[nodiscard]] std::int64_t samples() const override { return 12; }
  [[nodiscard]] double seconds_waited() const override { return waited_; }

  std::atomic<bool> held = true, in_next = false;
  bool fails = false;

 private:
  double waited_ = 0;
};

class WatchedSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<HeldSource> owned_ = std::make_unique<HeldSource>();
  HeldSource* held_ = owned_.get();
  WatchedSource source_{std::move(owned_)};
};

TEST_F(WatchedSourceTest, AWaitThatHasNotEndedCounts) {
  source_.begin_epoch({});
  EXPECT_EQ(source_.seconds_waited_so_far(), kBefore);
  {
    const std::jthread consumer([&] { EXPECT_FALSE(source_.next()); });
    EXPECT_TRUE(test::eventually([&] { return held_->in_next.load(); }));
    const double first = source_.seconds_waited_so_far();
    EXPECT_GE(first, kBefore);
    EXPECT_TRUE(test::eventually([&] { return source_.seconds_waited_so_far() > first; }));
    held_->held = false;
    held_->held.notify_all();
  }
  EXPECT_EQ(source_.seconds_waited_so_far(), kBefore + 2);
  EXPECT_EQ(source_.seconds_waited(), kBefore + 2);
}

TEST_F(WatchedSourceTest, AnErrorEndsAWait) {
  source_.begin_epoch({});
  held_->held = false;
  held_->fails = true;
  EXPECT_THROW(static_cast<void>(source_.next()), std::runtime_error);
  EXPECT_EQ(source_.seconds_waited_so_far(), kBefore + 2);
}

TEST_F(WatchedSourceTest, OtherCallsAreForwardedToTheSource) {
  EXPECT_EQ(source_.size(1), 3);
  EXPECT_EQ(source_.samples(), 12);
}

}  // namespace
}  // namespace precast::engine
