#include "tests/support/counted_memory.h"

#include <gtest/gtest.h>

#include <cstddef>

#include "tests/kernels/planted_kernels.h"

namespace precast::test {
namespace {

constexpr std::size_t kSize = 2048;
constexpr std::size_t kBytes = kSize * sizeof(float);

TEST(CountedMemoryTest, PacksOf16BytesAreCountedAndOtherArraysNot) {
  CountedMemory memory;
  const float* in = memory.array<float>("in", 2 * kSize);
  float* out = memory.array<float>("out", 2 * kSize);
  memory.array<float>("other", kSize);
  const auto counted = memory.count_arrays([&] { copy_by_packs(in, nullptr, out, kSize); });
  EXPECT_EQ(counted,
            (std::map<std::string, MovedBytes>{{"in", {kBytes, 0}}, {"out", {0, kBytes}}}));
  EXPECT_EQ(memory.count([&] { copy_by_memcpy(in, out, kSize); }), (MovedBytes{kBytes, kBytes}));
}

TEST(CountedMemoryTest, AnArrayThatAKernelNeedNotReadIsCounted) {
  CountedMemory memory;
  const float* in = memory.array<float>("in", kSize);
  const float* unneeded = memory.array<float>("unneeded", kSize);
  float* out = memory.array<float>("out", kSize);
  const auto counted = memory.count_arrays([&] { copy_by_packs(in, unneeded, out, kSize); });
  ASSERT_TRUE(counted.contains("unneeded"));
  // The kernel reads the first and the last float of each pack; the compiler may read the complete
  // pack.
  EXPECT_GE(counted.at("unneeded").read, kBytes / 2);
  EXPECT_EQ(counted.at("unneeded").written, 0U);
  EXPECT_EQ(counted.at("in"), (MovedBytes{kBytes, 0}));
}

TEST(CountedMemoryTest, RereadsWithinALaunchCountOnceAndSharedMemoryNever) {
  CountedMemory memory;
  const float* in = memory.array<float>("in", kSize);
  float* out = memory.array<float>("out", kSize);
  EXPECT_EQ(memory.count([&] { add_neighbours(in, out, kSize); }), (MovedBytes{kBytes, kBytes}));
  const MovedBytes twice = memory.count([&] {
    add_neighbours(in, out, kSize);
    add_neighbours(in, out, kSize);
  });
  EXPECT_EQ(twice, (MovedBytes{2 * kBytes, 2 * kBytes})) << "each launch counts separately";
}

TEST(CountedMemoryTest, AtomicsReadAndWrite) {
  CountedMemory memory;
  const float* in = memory.array<float>("in", kSize);
  float* sums = memory.array<float>("sums", kSize / 256);
  const auto counted = memory.count_arrays([&] { add_up_blocks(in, sums, kSize); });
  EXPECT_EQ(counted.at("sums"), (MovedBytes{kBytes / 256, kBytes / 256}));
  EXPECT_EQ(counted.at("in"), (MovedBytes{kBytes, 0}));
}

}  // namespace
}  // namespace precast::test
