#include "data/decode/shared_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <thread>
#include <vector>

#include "data/decode/jpeg_index.h"
#include "tests/support/child.h"

namespace precast::data {
namespace {

using ::testing::ElementsAre;

constexpr std::array<std::uint64_t, 2> kPoints = {7, 9};

/// Private dirty memory of this process, in bytes.
std::uint64_t private_bytes() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::string word;
  std::uint64_t kb = 0;
  while (file >> word && word != "Private_Dirty:") {
  }
  file >> kb;
  return kb << 10;
}

TEST(SharedCheckpointsTest, ProcessesFindWhatTheOthersAdd) {
  JpegIndex here(1000, 8, /*max_bytes=*/1 << 20);
  const std::string address = here.share();
  ASSERT_FALSE(address.empty());
  here.add(1, kPoints);
  test::Child child([&] {
    JpegIndex there(1000, 8, /*max_bytes=*/1 << 20);
    const bool joined = there.join(address);
    there.add(2, std::array<std::uint64_t, 1>{5});
    there.add(3, {});
    const bool found = joined && !there.accepts(1) && there.find(1).points.size() == 2 &&
                       there.find(1).points[1] == 9;
    return found ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_THAT(here.find(1).points, ElementsAre(7, 9));
  EXPECT_THAT(here.find(2).points, ElementsAre(5));
  EXPECT_EQ(here.find(2).interval, 8U);
  EXPECT_TRUE(here.find(3).empty());
  EXPECT_FALSE(here.accepts(3)) << "sample 3 is known to have no checkpoints";
  EXPECT_TRUE(here.accepts(0));
}

TEST(SharedCheckpointsTest, OnlyTheSameIndexIsJoined) {
  JpegIndex here(1000, 8, /*max_bytes=*/1 << 20);
  const std::string address = here.share();
  EXPECT_FALSE(JpegIndex(999, 8, 1 << 20).join(address));
  EXPECT_FALSE(JpegIndex(1000, 4, 1 << 20).join(address));
  EXPECT_FALSE(JpegIndex(1000, 8, 0).join(address))
      << "an index with max_bytes = 0 cannot be shared";
  EXPECT_FALSE(JpegIndex(1000, 8, 1 << 20).join(""));
  EXPECT_FALSE(JpegIndex(1000, 8, 1 << 20).join("/dev/null:0000000000000000"));
  std::string of_another_host = address;
  of_another_host.back() = of_another_host.back() == '0' ? '1' : '0';
  JpegIndex alone(1000, 8, 1 << 20);
  EXPECT_FALSE(alone.join(of_another_host));
  alone.add(1, kPoints);
  EXPECT_TRUE(here.find(1).empty());
  EXPECT_THAT(alone.find(1).points, ElementsAre(7, 9));
}

TEST(SharedCheckpointsTest, StopsGrowingAtItsLimitForAllProcesses) {
  JpegIndex here(1000, 8, /*max_bytes=*/1000);
  JpegIndex there(1000, 8, /*max_bytes=*/1000);
  ASSERT_TRUE(there.join(here.share()));
  const std::vector<std::uint64_t> points(99, 1);
  there.add(0, points);
  here.add(1, points);
  EXPECT_EQ(here.find(0).points.size(), points.size());
  EXPECT_TRUE(here.find(1).empty());
  EXPECT_FALSE(here.accepts(2)) << "the shared index has reached its limit";
  EXPECT_FALSE(there.accepts(2)) << "the shared index has reached its limit";
  EXPECT_LE(there.bytes(), there.max_memory_bytes());
}

TEST(SharedCheckpointsTest, AnIndexWithoutALimitIsSharedToo) {
  JpegIndex here(1000, 8, /*max_bytes=*/UINT64_MAX);
  JpegIndex there(1000, 8, /*max_bytes=*/UINT64_MAX);
  ASSERT_TRUE(there.join(here.share()));
  there.add(0, kPoints);
  EXPECT_THAT(here.find(0).points, ElementsAre(7, 9));
}

TEST(SharedCheckpointsTest, ThreadsOfSeveralIndexesMayAddAndFindAtOnce) {
  constexpr std::uint64_t kSamples = 2000;
  JpegIndex first(kSamples, 8, /*max_bytes=*/16 << 20);
  JpegIndex second(kSamples, 8, /*max_bytes=*/16 << 20);
  ASSERT_TRUE(second.join(first.share()));
  std::vector<std::jthread> threads;
  for (JpegIndex* const index : {&first, &second, &first, &second}) {
    threads.emplace_back([index] {
      for (std::uint64_t s = 0; s < kSamples; ++s) {
        const std::vector<std::uint64_t> points(1 + s % 100, s);
        if (index->accepts(s)) index->add(s, points);
        EXPECT_TRUE(std::ranges::equal(index->find(s).points, points)) << s;
      }
    });
  }
}

TEST(SharedCheckpointsTest, AnIndexOfImageNetTakesNoMemoryBeforeItIsFilled) {
  constexpr std::uint64_t kImages = 1'281'167;
  const std::uint64_t before = private_bytes();
  const auto index = SharedCheckpoints::make(kImages, 8, /*max_bytes=*/std::uint64_t{2} << 30);
  ASSERT_NE(index, nullptr);
  EXPECT_LT(private_bytes(), before + (2 << 20))
      << "memory must not be used for each image in advance";
}

TEST(SharedCheckpointsTest, SeveralFilesAreSharedOneByOne) {
  const auto make = [] {
    std::vector<std::shared_ptr<JpegIndex>> files = {
        std::make_shared<JpegIndex>(10, 8, 1 << 20),
        std::make_shared<JpegIndex>(5, 8, 0),  // without JPEGs
        std::make_shared<JpegIndex>(10, 4, 1 << 20)};
    return JpegIndex(std::move(files));
  };
  JpegIndex here = make();
  JpegIndex there = make();
  ASSERT_TRUE(there.join(here.share()));
  here.add(9, kPoints);
  there.add(15, std::array<std::uint64_t, 1>{5});
  EXPECT_THAT(there.find(9).points, ElementsAre(7, 9));
  EXPECT_THAT(here.find(15).points, ElementsAre(5));
  EXPECT_EQ(here.find(15).interval, 4U);
}

TEST(JpegIndexTest, ALowerLimitHoldsForWhatIsNotShared) {
  JpegIndex alone(1000, 8, /*max_bytes=*/2000);
  alone.limit(500);
  alone.add(0, std::vector<std::uint64_t>(99, 1));
  EXPECT_TRUE(alone.find(0).empty());
}

}  // namespace
}  // namespace precast::data
