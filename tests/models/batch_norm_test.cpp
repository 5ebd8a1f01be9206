// Tests synchronised batch normalisation: the reference implementation, and the one that uses
// libtorch's GPU-only operators. batch_norm_ops_on_cpu.cpp implements these operators on the CPU,
// so that no GPU is needed.
#include "models/detail/batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "framework/api/single_rank.h"
#include "tests/models/split_batch.h"
#include "tests/support/lone_rank.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BatchNorm2d;
using models::detail::sync_batch_norm;
using models::detail::sync_batch_norm_cuda;

TEST(RankBatchNormTest, TwoRanksMatchTheUndividedBatch) {
  expect_one_batch(sync_batch_norm, {});
  expect_one_batch(sync_batch_norm, {.channels_last = true, .first = 1, .second = 9});
}

TEST(RankBatchNormTest, AnEmptyRankCounts) {
  expect_one_batch(sync_batch_norm, {.first = 0, .second = 5});
}

TEST(RankBatchNormTest, TheGpuOperatorsAreUsedAsOneBatchNeedsThem) {
  for (const at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const bool channels_last : {false, true}) {
      SCOPED_TRACE(testing::Message() << type << " channels_last " << channels_last);
      expect_one_batch(sync_batch_norm_cuda, {.type = type, .channels_last = channels_last});
      expect_one_batch(sync_batch_norm_cuda,
                       {.type = type, .channels_last = channels_last, .first = 2, .second = 7});
    }
  }
}

TEST(RankBatchNormTest, NothingWaitsForTheDevice) {
  EXPECT_FALSE(waiting_operators(operators_called([] {
                 (void)noise_tensor(1, {3}).sum().item<double>();
               })).empty())
      << "operators that wait are detected";
  const auto ranks = make_single_rank();
  for (const auto& normalize : {sync_batch_norm, sync_batch_norm_cuda}) {
    const at::Tensor x = noise_tensor(1, {4, 3, 5, 5}).requires_grad_();
    const BatchNorm2d norm(3);
    const auto called = operators_called([&] {
      normalize(x, {.weight = norm->weight,
                    .bias = norm->bias,
                    .running_mean = norm->running_mean,
                    .running_var = norm->running_var,
                    .ranks = ranks.get()})
          .sum()
          .backward();
    });
    EXPECT_TRUE(x.grad().defined());
    EXPECT_EQ(waiting_operators(called), std::set<std::string>{});
  }
}

TEST(RankBatchNormTest, TheGpuPathSendsOneMessageEachWayAndSkipsAFrozenInput) {
  /// Records the sizes of the summed tensors.
  class NotedRank final : public LoneRank {
   public:
    void all_reduce_sum(std::vector<at::Tensor> tensors) override {
      for (const at::Tensor& tensor : tensors) sizes.push_back(tensor.numel());
    }
    std::vector<std::int64_t> sizes;
  };
  for (const bool input_learns : {true, false}) {
    NotedRank ranks;
    const at::Tensor x = noise_tensor(1, {4, 3, 5, 5}).requires_grad_(input_learns);
    const BatchNorm2d norm(3);
    sync_batch_norm_cuda(x, {.weight = norm->weight,
                             .bias = norm->bias,
                             .running_mean = norm->running_mean,
                             .running_var = norm->running_var,
                             .ranks = &ranks})
        .square()
        .sum()
        .backward();
    EXPECT_TRUE(norm->weight.grad().defined());
    EXPECT_EQ(ranks.sizes,
              input_learns ? (std::vector<std::int64_t>{7, 6}) : (std::vector<std::int64_t>{7}));
  }
}

TEST(BatchNorm2dTest, OneRankTrainsAsTorchDoesAndCountsItsBatches) {
  const auto ranks = make_single_rank();
  BatchNorm2d shared(3, ranks.get());
  BatchNorm2d own(3);
  const at::Tensor x = noise_tensor(1, {4, 3, 5, 5}, 2);
  EXPECT_TRUE(at::allclose(shared->forward(x), own->forward(x), 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(shared->running_var, own->running_var, 1e-5));
  EXPECT_EQ(shared->num_batches_tracked.item<std::int64_t>(), 1);
  shared->eval();
  EXPECT_FALSE(at::equal(shared->forward(x), own->forward(x)));
  EXPECT_EQ(shared->num_batches_tracked.item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace precast::test
