#include "tests/support/cuda_on_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <source_location>
#include <vector>

namespace precast::cuda_on_host {
namespace {

/// Two locations in different files with the same line and column. @{
std::source_location location_one();
std::source_location location_two();
/// @}

using Kind = KernelFault::Kind;

constexpr unsigned kEveryLane = ~0u;

/// The kind of fault that a launch ends with.
template <typename Launch>
std::optional<Kind> fault_of(Launch launch) {
  try {
    launch();
  } catch (const KernelFault& fault) {
    return fault.kind();
  }
  return std::nullopt;
}

/// Sums of the columns of [rows, gridDim.x]; one block per column, one partial sum per warp.
template <bool kWithBarrier>
__global__ void column_sums(const __half* values, int rows, float* sums) {
  PRECAST_SHARED(partial, float[8]);
  float sum = 0;
  for (unsigned r = threadIdx.x; r < static_cast<unsigned>(rows); r += blockDim.x) {
    sum += __half2float(values[r * gridDim.x + blockIdx.x]);
  }
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(kEveryLane, sum, lanes);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  if (kWithBarrier) __syncthreads();
  if (threadIdx.x == 0) {
    float all = 0;
    for (const float of_warp : partial) all += of_warp;
    sums[blockIdx.x] = all;
  }
}

class ColumnSumsTest : public ::testing::Test {
 protected:
  static constexpr int kRows = 777;
  static constexpr unsigned kColumns = 32;
  ColumnSumsTest() {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double value = static_cast<double>(i * 7919 % 2001) / 1000 - 1;
      values_[i] = __double2half(value);
      expected_[i % kColumns] += double{__half2float(values_[i])};
    }
  }
  template <typename Kernel>
  std::vector<float> sums(Kernel kernel, std::uint64_t seed) {
    set_thread_order(seed);
    std::vector<float> sums(kColumns);
    PRECAST_LAUNCH(kernel, kColumns, 256, 0, nullptr, values_.data(), kRows, sums.data());
    return sums;
  }
  std::size_t wrong(const std::vector<float>& sums) const {
    std::size_t wrong = 0;
    for (std::size_t c = 0; c < kColumns; ++c) {
      if (!(std::abs(double{sums[c]} - expected_[c]) < 1e-4)) ++wrong;
    }
    return wrong;
  }
  std::vector<__half> values_ = std::vector<__half>(kRows * kColumns);
  std::array<double, kColumns> expected_{};
};

TEST_F(ColumnSumsTest, AreRightAndTheSameInEveryOrder) {
  const std::vector<float> first = sums(column_sums<true>, 1);
  EXPECT_EQ(wrong(first), 0u);
  for (std::uint64_t seed = 2; seed <= 5; ++seed) EXPECT_EQ(sums(column_sums<true>, seed), first);
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(ColumnSumsTest, AreWrongAndDifferWithoutTheBarrier) {
  const std::vector<float> first = sums(column_sums<false>, 1);
  const std::vector<float> second = sums(column_sums<false>, 2);
  RecordProperty("wrong_of_32", static_cast<int>(wrong(first)));
  EXPECT_GT(wrong(first), kColumns / 2);
  EXPECT_GT(wrong(second), kColumns / 2);
  EXPECT_NE(std::memcmp(first.data(), second.data(), kColumns * sizeof(float)), 0);
}
#else
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=1";
}
TEST_F(ColumnSumsTest, RaceWithoutTheBarrier) {
  EXPECT_DEATH(sums(column_sums<false>, 1), "data race");
}
/// Correct in every order of threads, because there is no switch between the read and the write of
/// a thread.
__global__ void count_without_atomics(int* count) {
  *count += 1;
}
TEST(CudaOnHostTest, ReportsAnUpdateThatIsNotAtomic) {
  int count = 0;
  EXPECT_DEATH(PRECAST_LAUNCH(count_without_atomics, 1, 2, 0, nullptr, &count), "data race");
}
#endif

#if defined(__SANITIZE_ADDRESS__)
__global__ void write_behind_static_memory(unsigned index) {
  PRECAST_SHARED(values, int[5]);
  values[index] = 1;
}
__global__ void write_behind_dynamic_memory(unsigned index) {
  PRECAST_DYNAMIC_SHARED(values, int);
  values[index] = 1;
}
TEST(CudaOnHostTest, ReportsAnAccessBehindSharedMemory) {
  EXPECT_DEATH(PRECAST_LAUNCH(write_behind_static_memory, 1, 1, 0, nullptr, 5), "");
  EXPECT_DEATH(PRECAST_LAUNCH(write_behind_dynamic_memory, 1, 1, 20, nullptr, 5),
               "heap-buffer-overflow");
}
#endif

__global__ void record_shared(unsigned* statics, unsigned* dynamics) {
  PRECAST_SHARED(value, unsigned[2]);
  PRECAST_DYNAMIC_SHARED(more, unsigned);
  if (threadIdx.x == 0) {
    statics[blockIdx.x] = value[1];
    dynamics[blockIdx.x] = more[3];
    value[1] = more[3] = 7;
  }
}

TEST(CudaOnHostTest, SharedMemoryIsPoisonedBeforeEachBlock) {
  std::vector<unsigned> statics(5), dynamics(5);
  PRECAST_LAUNCH(record_shared, 5, 3, 16, nullptr, statics.data(), dynamics.data());
  EXPECT_THAT(statics, ::testing::Each(0xffffffffu));
  EXPECT_THAT(dynamics, ::testing::Each(0xffffffffu));
}

__global__ void visit(unsigned* visits, unsigned* order, unsigned* next) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned index = block * blockDim.x * blockDim.y * blockDim.z + thread;
  visits[index] += 1;
  order[atomicAdd(next, 1)] = index;
}

std::vector<unsigned> order_of_visits(std::uint64_t seed) {
  constexpr unsigned kAll = 2 * 3 * 4 * 5 * 6 * 7;
  std::vector<unsigned> visits(kAll), order(kAll);
  unsigned next = 0;
  set_thread_order(seed);
  PRECAST_LAUNCH(visit, dim3(2, 3, 4), dim3(5, 6, 7), 0, nullptr, visits.data(), order.data(),
                 &next);
  EXPECT_THAT(visits, ::testing::Each(1u));
  return order;
}

TEST(CudaOnHostTest, VisitsEachThreadOfThreeDimensionsOnceInTheOrderOfTheSeed) {
  const std::vector<unsigned> first = order_of_visits(1);
  EXPECT_EQ(order_of_visits(1), first);
  EXPECT_NE(order_of_visits(2), first);
  std::vector<unsigned> blocks;
  for (std::size_t i = 0; i < first.size(); i += 210) blocks.push_back(first[i] / 210);
  EXPECT_FALSE(std::ranges::is_sorted(blocks));
}

__global__ void shuffles(int* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int value = 100 + lane;
  int* const to = out + threadIdx.x * 6;
  to[0] = __shfl_xor_sync(kEveryLane, value, 5);
  to[1] = __shfl_down_sync(kEveryLane, value, 3);
  to[2] = __shfl_up_sync(kEveryLane, value, 3);
  to[3] = __shfl_sync(kEveryLane, value, 9);
  to[4] = __shfl_down_sync(kEveryLane, value, 3, 8);
  to[5] = __shfl_sync(kEveryLane, value, 3, 8);
}

TEST(CudaOnHostTest, ShufflesAsAGpuDoes) {
  std::vector<int> out(64 * 6);
  PRECAST_LAUNCH(shuffles, 1, 64, 0, nullptr, out.data());
  for (int t = 0; t < 64; ++t) {
    const int lane = t % 32;
    const std::vector<int> found(out.begin() + t * 6, out.begin() + t * 6 + 6);
    const std::vector<int> expected = {100 + (lane ^ 5),
                                       100 + (lane + 3 < 32 ? lane + 3 : lane),
                                       100 + (lane >= 3 ? lane - 3 : lane),
                                       109,
                                       100 + (lane % 8 + 3 < 8 ? lane + 3 : lane),
                                       100 + lane / 8 * 8 + 3};
    EXPECT_EQ(found, expected) << "thread " << t;
  }
}

__global__ void votes(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= 20) return;  // lanes that have returned take no part
  out[lane * 4] = __ballot_sync(kEveryLane, lane % 3 == 0);
  const unsigned half = lane < 8 ? 0xffu : 0xfff00u;
  out[lane * 4 + 1] = __ballot_sync(half, 1);
  out[lane * 4 + 2] = static_cast<unsigned>(__any_sync(half, lane == 9));
  out[lane * 4 + 3] = static_cast<unsigned>(__all_sync(half, lane < 8));
}

TEST(CudaOnHostTest, VotesOverTheLanesOfTheMask) {
  std::vector<unsigned> out(20 * 4);
  PRECAST_LAUNCH(votes, 1, 32, 0, nullptr, out.data());
  for (std::size_t lane = 0; lane < 20; ++lane) {
    const bool low = lane < 8;
    EXPECT_EQ(out[lane * 4], 0x49249u);
    EXPECT_EQ(out[lane * 4 + 1], low ? 0xffu : 0xfff00u);
    EXPECT_EQ(out[lane * 4 + 2], low ? 0u : 1u);
    EXPECT_EQ(out[lane * 4 + 3], low ? 1u : 0u);
  }
}

__global__ void count_threads(int* out) {
  const int thread = static_cast<int>(threadIdx.x);
  out[thread * 3] = __syncthreads_count(thread % 2);
  out[thread * 3 + 1] = __syncthreads_or(thread == 70);
  out[thread * 3 + 2] = __syncthreads_and(thread < 70);
}

TEST(CudaOnHostTest, BarriersCountTheThreadsOfTheBlock) {
  std::vector<int> out(75 * 3);
  PRECAST_LAUNCH(count_threads, 1, 75, 0, nullptr, out.data());
  for (std::size_t t = 0; t < 75; ++t) {
    EXPECT_EQ(std::vector<int>(out.begin() + static_cast<std::ptrdiff_t>(t * 3),
                               out.begin() + static_cast<std::ptrdiff_t>(t * 3 + 3)),
              (std::vector<int>{37, 1, 0}));
  }
}

__global__ void atomics(float* sum, unsigned* most, int* least_order) {
  atomicAdd(sum, 0.5f);
  atomicMax(most, threadIdx.x * 10);
  atomicMax(least_order, -static_cast<int>(threadIdx.x));
}

TEST(CudaOnHostTest, AtomicsAddAndKeepTheLargest) {
  float sum = 1;
  unsigned most = 5;
  int least = -1000;
  PRECAST_LAUNCH(atomics, 4, 100, 0, nullptr, &sum, &most, &least);
  EXPECT_EQ(sum, 201.0f);
  EXPECT_EQ(most, 990u);
  EXPECT_EQ(least, 0);
}

// ---- kernels and launches that fail on a GPU

__global__ void return_before_the_barrier(unsigned threads) {
  if (threadIdx.x >= threads) return;
  __syncthreads();
}
__global__ void two_barriers(unsigned threads) {
  if (threadIdx.x < threads) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void barriers_of_two_files(unsigned threads) {
  __syncthreads(threadIdx.x < threads ? location_one() : location_two());
}
__global__ void call_outside_of_the_mask() {
  __syncwarp(1u << (threadIdx.x / 2));
}
__global__ void two_operations(unsigned lanes) {
  if (threadIdx.x < lanes) {
    __syncwarp();
  } else {
    __ballot_sync(kEveryLane, 1);
  }
}
__global__ void half_a_warp(unsigned lanes) {
  if (threadIdx.x < lanes) __syncwarp();
  __syncthreads();
}
__global__ void spin(int* flag) {
  while (atomicAdd(flag, 0) == 0) {
  }
}
__global__ void throw_at(unsigned thread) {
  if (threadIdx.x == thread) throw std::runtime_error("planted");
}
template <typename Kernel, typename... Arguments>
std::optional<Kind> fault_in(Kernel kernel, const Arguments&... arguments) {
  return fault_of([&] { launch(kernel, 2, 64, 0, nullptr, arguments...); });
}

TEST(CudaOnHostTest, ReportsThreadsThatDoNotReachABarrier) {
  EXPECT_EQ(fault_in(return_before_the_barrier, 63u), Kind::missing_threads);
  EXPECT_EQ(fault_in(return_before_the_barrier, 64u), std::nullopt);
  EXPECT_EQ(fault_in(half_a_warp, 16u), Kind::missing_threads);
  EXPECT_EQ(fault_in(half_a_warp, 32u), std::nullopt);
}

TEST(CudaOnHostTest, SaysWhereThreadsWaitForOthers) {
  try {
    launch(return_before_the_barrier, 1, 8, 0, nullptr, 5u);
    FAIL() << "expected a KernelFault";
  } catch (const KernelFault& fault) {
    EXPECT_THAT(fault.what(), ::testing::HasSubstr("cuda_on_host_test.cpp:"));
    EXPECT_THAT(fault.what(), ::testing::HasSubstr("5 of 8"));
  }
}

TEST(CudaOnHostTest, ReportsThreadsAtDifferentBarriers) {
  EXPECT_EQ(fault_in(two_barriers, 1u), Kind::divergent_barrier);
  EXPECT_EQ(fault_in(two_barriers, 64u), std::nullopt);
  EXPECT_EQ(fault_in(barriers_of_two_files, 1u), Kind::divergent_barrier);
  EXPECT_EQ(fault_in(barriers_of_two_files, 64u), std::nullopt);
}

TEST(CudaOnHostTest, ReportsWarpOperationsThatDoNotMatch) {
  EXPECT_EQ(fault_in(call_outside_of_the_mask), Kind::warp_operation);
  EXPECT_EQ(fault_in(two_operations, 3u), Kind::warp_operation);
}

TEST(CudaOnHostTest, ReportsThreadsThatSpinForever) {
  int flag = 0;
  EXPECT_EQ(fault_in(spin, &flag), Kind::spinning);
}

TEST(CudaOnHostTest, ReportsAnExceptionAndRunsOtherKernelsAfterwards) {
  EXPECT_EQ(fault_in(throw_at, 40u), Kind::exception);
  EXPECT_EQ(fault_in(throw_at, 64u), std::nullopt);
}

TEST(CudaOnHostTest, RefusesSizesThatNoGpuTakes) {
  const auto fault_for = [](dim3 grid, dim3 block, std::size_t shared_bytes) {
    return fault_of([&] { launch(throw_at, grid, block, shared_bytes, nullptr, 2000u); });
  };
  EXPECT_EQ(fault_for(1, 1024, 227 << 10), std::nullopt);
  EXPECT_EQ(fault_for(0, 32, 0), Kind::launch);
  EXPECT_EQ(fault_for(1, 1025, 0), Kind::launch);
  EXPECT_EQ(fault_for(1, dim3(1, 1, 65), 0), Kind::launch);
  EXPECT_EQ(fault_for(dim3(1, 65536), 1, 0), Kind::launch);
  EXPECT_EQ(fault_for(1, 1, (227 << 10) + 1), Kind::launch);
}

// At the end of the file, because a #line changes the numbers of all lines after it.
// clang-format off
#line 1 "one.cuh"
std::source_location location_one() { return std::source_location::current(); }
#line 1 "two.cuh"
std::source_location location_two() { return std::source_location::current(); }
// clang-format on

}  // namespace
}  // namespace precast::cuda_on_host
