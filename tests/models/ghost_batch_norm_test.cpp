#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "models/detail/batch_norm.h"
#include "tests/models/golden_model.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/paths.h"

namespace precast::test {
namespace {

using models::detail::BatchNorm2d;
using nlohmann::json;

const json& golden() {
  static const json value =
      json::parse(std::ifstream(test::golden_dir() + "/recipes/methods.json"))["ghost_batch_norm"];
  return value;
}

void expect_values(const at::Tensor& actual, const json& values) {
  const at::Tensor expected = at::tensor(values.get<std::vector<float>>()).view(actual.sizes());
  EXPECT_TRUE(at::allclose(actual.detach(), expected, 1e-4, 1e-5)) << actual << expected;
}

/// A batch norm with the parameters of the golden.
BatchNorm2d ghost_norm(std::int64_t size) {
  const at::NoGradGuard no_grad;
  BatchNorm2d norm(3, nullptr, size);
  norm->weight.copy_(noise_tensor(1, {3}) + 1);
  norm->bias.copy_(noise_tensor(2, {3}));
  return norm;
}

/// The samples have different means.
at::Tensor golden_input(std::int64_t samples) {
  return noise_tensor(3, {samples, 3, 2, 2}) + noise_tensor(4, {samples, 1, 1, 1}, 8);
}

/// The unbiased variance of one value is NaN, which would make the running statistics NaN.
TEST(GhostBatchNormSizeTest, ChunksOfOneValuePerChannelAreAnError) {
  BatchNorm2d norm = ghost_norm(3);
  EXPECT_NO_THROW(norm->forward(noise_tensor(3, {6, 3, 1, 1})));
  try {
    norm->forward(noise_tensor(3, {7, 3, 1, 1}));  // 3, 3, 1
    ADD_FAILURE();
  } catch (const Error& error) {
    // A usage error would also stop the other trials of a grid.
    EXPECT_EQ(error.exit_code(), ExitCode::failed);
  }
  EXPECT_TRUE(at::isfinite(norm->running_var).all().item<bool>());
}

class GhostBatchNormTest : public ::testing::TestWithParam<bool> {};

TEST_P(GhostBatchNormTest, OutputsGradientsAndStatisticsAreComposers) {
  const auto layout = GetParam() ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  ASSERT_GE(golden().size(), 5U);
  for (const json& item : golden()) {
    SCOPED_TRACE(item["samples"].dump() + " in chunks of " + item["size"].dump());
    BatchNorm2d norm = ghost_norm(item["size"].get<std::int64_t>());
    const at::Tensor x =
        golden_input(item["samples"].get<std::int64_t>()).contiguous(layout).requires_grad_(true);
    const at::Tensor y = norm->forward(x);
    EXPECT_TRUE(y.is_contiguous(layout));
    (y * noise_tensor(5, y.sizes())).sum().backward();
    expect_values(y, item["output"]);
    expect_values(x.grad(), item["input_gradient"]);
    expect_values(norm->weight.grad(), item["weight_gradient"]);
    expect_values(norm->bias.grad(), item["bias_gradient"]);
    expect_values(norm->running_mean, item["running_mean"]);
    expect_values(norm->running_var, item["running_var"]);
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
    norm->eval();
    expect_values(norm->forward(x), item["evaluated"]);
    EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, GhostBatchNormTest, ::testing::Bool(),
                         [](const auto& layout) { return layout.param ? "nhwc" : "nchw"; });

TEST(GhostBatchNormModelTest, EveryModelAppliesItInTrainingAlone) {
  const at::NoGradGuard no_grad;
  const at::Tensor images = noise_tensor(1, {4, 3, 32, 32});
  const std::vector<std::pair<std::string, std::string>> archs = {
      {"resnet18", "{}"},
      {"resnet50", "{}"},
      {"layers", "{layers: [conv: {out: 4}, bn, relu, global_avg_pool, flatten, linear]}"}};
  for (const auto& [arch, options] : archs) {
    for (const bool blurpool : {false, true}) {
      SCOPED_TRACE(testing::Message() << arch << " blurpool " << blurpool);
      const auto build = [&](std::int64_t size) {
        at::manual_seed(4);
        return make_model({.arch = arch,
                           .num_classes = 10,
                           .blurpool = blurpool,
                           .ghost_batch_size = size,
                           .params = params(options)});
      };
      const auto plain = build(0);
      const auto whole = build(4);
      const auto ghost = build(2);
      const auto state = ghost->state();
      const auto plain_state = plain->state();
      ASSERT_EQ(state.size(), plain_state.size());
      for (std::size_t i = 0; i < state.size(); ++i) {
        EXPECT_EQ(state[i].name, plain_state[i].name);
        EXPECT_TRUE(at::equal(state[i].tensor, plain_state[i].tensor)) << state[i].name;
      }
      for (const auto* model : {&plain, &whole, &ghost}) (*model)->train(false);
      const auto logits = [&](const auto& model) { return model->forward(make_batch(images)); };
      EXPECT_TRUE(at::equal(logits(ghost), logits(plain)));
      for (const auto* model : {&plain, &whole, &ghost}) (*model)->train(true);
      const at::Tensor expected = logits(plain);
      EXPECT_TRUE(at::equal(logits(whole), expected));
      EXPECT_FALSE(at::allclose(logits(ghost), expected));
    }
  }
}

}  // namespace
}  // namespace precast::test
