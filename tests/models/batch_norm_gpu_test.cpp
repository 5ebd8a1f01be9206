// Compares libtorch's kernels for batch normalisation over ranks with BatchNorm2d on the undivided
// batch.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "framework/api/single_rank.h"
#include "models/detail/batch_norm.h"
#include "tests/models/split_batch.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BatchNorm2d;
using models::detail::sync_batch_norm_cuda;

const at::Device kGpu(at::kCUDA, 0);

class BatchNormGpuTest : public ::testing::TestWithParam<std::tuple<at::ScalarType, bool>> {
 protected:
  void SetUp() override {
    if (!at::globalContext().hasCUDA()) GTEST_SKIP() << "no GPU that libtorch can use";
  }
  static SplitBatch split(std::int64_t first, std::int64_t second) {
    const auto [type, channels_last] = GetParam();
    return {.device = kGpu,
            .type = type,
            .channels_last = channels_last,
            .first = first,
            .second = second};
  }
};

TEST_P(BatchNormGpuTest, TwoRanksMatchTheUndividedBatch) {
  expect_one_batch(sync_batch_norm_cuda, split(6, 6));
}

TEST_P(BatchNormGpuTest, RanksMayHaveDifferentNumbersOfImages) {
  expect_one_batch(sync_batch_norm_cuda, split(1, 9));
  expect_one_batch(sync_batch_norm_cuda, split(7, 2));
}

TEST_P(BatchNormGpuTest, TheModuleUsesTheKernelsAndNothingWaitsForTheDevice) {
  const auto [type, channels_last] = GetParam();
  const auto ranks = make_single_rank();
  BatchNorm2d norm(8, ranks.get());
  norm->to(kGpu);
  const at::Tensor x =
      noise_tensor(1, {4, 8, 5, 5})
          .to(kGpu, type)
          .contiguous(channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous)
          .requires_grad_();
  const auto called = operators_called([&] { norm(x).sum().backward(); });
  for (const char* name : {"aten::batch_norm_stats", "aten::batch_norm_gather_stats_with_counts",
                           "aten::batch_norm_elemt", "aten::batch_norm_backward_reduce",
                           "aten::batch_norm_backward_elemt"}) {
    EXPECT_TRUE(called.contains(name)) << name;
  }
  EXPECT_EQ(waiting_operators(called), std::set<std::string>{});
  EXPECT_EQ(x.grad().scalar_type(), type);
}

INSTANTIATE_TEST_SUITE_P(TypesAndFormats, BatchNormGpuTest,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                                            ::testing::Bool()));

}  // namespace
}  // namespace precast::test
