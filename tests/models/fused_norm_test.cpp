// Built twice, see fused_device.h.
#include "models/detail/fused_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "framework/api/single_rank.h"
#include "models/detail/batch_norm.h"
#include "tests/models/fused_device.h"
#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

using models::detail::BatchNorm2d;
using models::detail::can_fuse;
using models::detail::Forked;
using models::detail::fused_norm;
using models::detail::FusedNorm;

constexpr double kMomentum = 0.1, kEps = 1e-5;

/// One pixel per image, single images, channels that do and do not fill packs of 4 and 8.
const std::vector<std::int64_t> kNormShapes[] = {{2, 1, 1, 1},  {1, 3, 5, 7},  {2, 8, 1, 1},
                                                 {3, 13, 4, 3}, {1, 24, 9, 5}, {4, 64, 2, 2}};

/// The inputs of one call. The same arguments of the constructor give the same inputs.
struct Inputs {
  at::Tensor x, residual, dy;
  FusedNorm norm;

  Inputs(at::IntArrayRef shape, at::ScalarType type, bool adds, bool relu)
      : x(channels_last(noise_tensor(1, shape, 4) + 0.5, type)),
        dy(channels_last(noise_tensor(3, shape, 2) + 0.1, type)) {
    if (adds) residual = channels_last(noise_tensor(2, shape, 2), type);
    const auto vector = [&](std::uint32_t stream, double scale, double offset) {
      return (noise_tensor(stream, {shape[1]}, scale) + offset).to(fused_device());
    };
    norm = {.weight = vector(4, 0.6, 1),
            .bias = vector(5, 0.6, 0),
            .running_mean = vector(6, 2, 0),
            .running_var = vector(7, 0.2, 1),
            .num_batches_tracked = {},
            .momentum = kMomentum,
            .eps = kEps,
            .relu = relu};
  }

  void to_double() {
    for (at::Tensor* tensor :
         {&x, &residual, &dy, &norm.weight, &norm.bias, &norm.running_mean, &norm.running_var}) {
      if (tensor->defined()) *tensor = tensor->to(at::kCPU, at::kDouble);
    }
  }
  void require_gradients() {
    for (at::Tensor* tensor : {&x, &residual, &norm.weight, &norm.bias})
      if (tensor->defined()) tensor->requires_grad_();
  }
};

at::Tensor composed(const Inputs& in) {
  at::Tensor y =
      at::batch_norm(in.x, in.norm.weight, in.norm.bias, in.norm.running_mean, in.norm.running_var,
                     /*training=*/true, in.norm.momentum, in.norm.eps, /*cudnn_enabled=*/false);
  if (in.residual.defined()) y = y + in.residual;
  return in.norm.relu ? at::relu(y) : y;
}

/// The largest factor by which a norm multiplies values. It is large if a channel has only two
/// values that are similar.
double largest_factor(const Inputs& in) {
  const at::Tensor variance = in.x.detach().var({0, 2, 3}, /*unbiased=*/false);
  return (in.norm.weight.detach().abs() / (variance + in.norm.eps).sqrt()).max().item<double>();
}

class FusedNormTest : public ::testing::TestWithParam<std::tuple<at::ScalarType, bool, bool>> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  at::ScalarType type_ = std::get<0>(GetParam());
  bool adds_ = std::get<1>(GetParam());
  bool relu_ = std::get<2>(GetParam());
  std::optional<CountedKernels> kernels_;
};

TEST_P(FusedNormTest, IsTheCompositionInDoublePrecision) {
  for (const std::vector<std::int64_t>& shape : kNormShapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    Inputs in(shape, type_, adds_, relu_), reference = in;
    reference.to_double();
    in.require_gradients();
    reference.require_gradients();
    ASSERT_TRUE(can_fuse(in.x));
    const at::Tensor y = fused_norm(in.x, in.residual, in.norm).y;
    y.backward(in.dy);
    const at::Tensor expected = composed(reference);
    expected.backward(reference.dy);

    EXPECT_EQ(y.scalar_type(), type_);
    EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
    // The tolerances allow for rounding to the type, and for a small error in float32.
    const double ulp = 1.01 * rounding(type_);
    const double rows = static_cast<double>(in.x.numel()) / static_cast<double>(shape[1]);
    const double scale = largest_factor(reference);
    expect_close("y", y, expected, ulp, 1e-5 + 1e-6 * scale);
    expect_close("running_mean", in.norm.running_mean, reference.norm.running_mean, 1e-6, 2e-6);
    expect_close("running_var", in.norm.running_var, reference.norm.running_var, 1e-5, 1e-5);
    expect_close("d_weight", in.norm.weight.grad(), reference.norm.weight.grad(), 0, 1e-5 * rows);
    expect_close("d_bias", in.norm.bias.grad(), reference.norm.bias.grad(), 0, 4e-6 * rows);
    // With two rows, the exact gradient is a small difference of large terms.
    expect_close("d_x", in.x.grad(), reference.x.grad(), ulp, 4e-5 * scale);
    if (adds_) expect_close("d_residual", in.residual.grad(), reference.residual.grad(), ulp, 0);
  }
  EXPECT_EQ(CountedKernels::calls().norm_forward, std::ssize(kNormShapes));
  EXPECT_EQ(CountedKernels::calls().norm_backward, std::ssize(kNormShapes));
}

/// The gradient of a mean or a sum has strides of 0; a residual may have any layout.
TEST_P(FusedNormTest, TakesGradientsAndResidualsOfAnyLayout) {
  const std::vector<std::int64_t> shape = {3, 13, 4, 3};
  Inputs in(shape, type_, adds_, relu_), other = in;
  in.dy = at::ones_like(in.dy);
  other.norm.running_mean = other.norm.running_mean.clone();
  other.norm.running_var = other.norm.running_var.clone();
  other.x = other.x.detach().clone();
  other.norm.weight = other.norm.weight.clone();
  other.norm.bias = other.norm.bias.clone();
  if (adds_) other.residual = other.residual.to(at::kFloat).contiguous();
  in.require_gradients();
  other.require_gradients();
  const at::Tensor y = fused_norm(in.x, in.residual, in.norm).y;
  y.backward(in.dy);
  const at::Tensor same = fused_norm(other.x, other.residual, other.norm).y;
  same.sum().backward();
  EXPECT_TRUE(at::equal(y, same));
  EXPECT_TRUE(at::equal(in.x.grad(), other.x.grad()));
  EXPECT_TRUE(at::equal(in.norm.weight.grad(), other.norm.weight.grad()));
  if (adds_) {
    EXPECT_EQ(other.residual.grad().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(in.residual.grad().to(at::kFloat), other.residual.grad()));
  }
}

/// Tests frozen parameters and inputs that need no gradients.
TEST_P(FusedNormTest, ComputesTheGradientsThatAreRequested) {
  Inputs in({2, 8, 3, 3}, type_, adds_, relu_), few = in;
  in.require_gradients();
  few.x = few.x.detach();
  few.norm.weight = few.norm.weight.detach().clone();
  few.norm.bias = few.norm.bias.detach().clone().requires_grad_();
  fused_norm(in.x, in.residual, in.norm).y.backward(in.dy);
  fused_norm(few.x, few.residual.defined() ? few.residual.detach() : few.residual, few.norm)
      .y.backward(few.dy);
  EXPECT_TRUE(at::equal(in.norm.bias.grad(), few.norm.bias.grad()));
  EXPECT_FALSE(few.x.grad().defined());
  EXPECT_FALSE(few.norm.weight.grad().defined());
}

/// The op adds the gradients of two consumers. If there is only one gradient, it uses that
/// gradient.
TEST_P(FusedNormTest, BothConsumersPassTheirGradients) {
  const std::vector<std::int64_t> shape = {3, 13, 4, 3};
  const auto gradients = [&](bool first, bool second) {
    Inputs in(shape, type_, adds_, relu_);
    in.require_gradients();
    const Forked result = fused_norm(in.x, in.residual, in.norm);
    EXPECT_EQ(result.y.const_data_ptr(), result.fork.const_data_ptr());
    std::vector<at::Tensor> outputs, of_outputs;
    if (first) outputs.push_back(result.y);
    if (second) outputs.push_back(result.fork);
    of_outputs.assign(outputs.size(), in.dy);
    torch::autograd::backward(outputs, of_outputs);
    return in;
  };
  const Inputs first = gradients(true, false), second = gradients(false, true),
               both = gradients(true, true);
  EXPECT_EQ(CountedKernels::calls().forks, 1);
  // Doubling is exact in every type.
  for (const auto& [one, other, sum] :
       {std::tuple{first.x, second.x, both.x},
        std::tuple{first.norm.weight, second.norm.weight, both.norm.weight},
        std::tuple{first.norm.bias, second.norm.bias, both.norm.bias}}) {
    EXPECT_TRUE(at::equal(one.grad(), other.grad()));
    EXPECT_TRUE(at::equal(2 * one.grad(), sum.grad()));
  }
  if (adds_) {
    EXPECT_TRUE(at::equal(2 * first.residual.grad(), both.residual.grad()));
  }
}

TEST_P(FusedNormTest, SecondDerivativesAreAnError) {
  Inputs in({2, 8, 3, 3}, type_, adds_, relu_);
  in.require_gradients();
  const at::Tensor y = fused_norm(in.x, in.residual, in.norm).y;
  EXPECT_THROW(torch::autograd::grad({y}, {in.x}, {in.dy}, /*retain_graph=*/true,
                                     /*create_graph=*/true),
               std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(TypesAndResiduals, FusedNormTest,
                         ::testing::Combine(::testing::Values(at::kFloat, at::kHalf, at::kBFloat16),
                                            ::testing::Bool(), ::testing::Bool()),
                         [](const auto& test) {
                           return std::string(c10::toString(std::get<0>(test.param))) +
                                  (std::get<1>(test.param) ? "WithResidual" : "") +
                                  (std::get<2>(test.param) ? "" : "WithoutRelu");
                         });

/// Tests when the module uses the kernels and when it uses separate ops.
class FusedModuleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }
  static at::Tensor images(at::IntArrayRef shape = {2, 8, 3, 3}) {
    return channels_last(noise_tensor(1, shape, 4), at::kFloat);
  }
  /// The number of fused calls in relu(norm(x) + x).
  static int fused_calls(BatchNorm2d norm, const at::Tensor& x) {
    CountedKernels::reset();
    norm->to(fused_device());
    static_cast<void>(norm->forward_relu(x, x));
    return CountedKernels::calls().norm_forward;
  }
  static BatchNorm2d fused_norm(Communicator* ranks = nullptr, std::int64_t ghost_batch_size = 0) {
    BatchNorm2d norm(8, ranks, ghost_batch_size);
    norm->fuse();
    return norm;
  }

 private:
  std::optional<CountedKernels> kernels_;
};

TEST_F(FusedModuleTest, IsFusedInTrainingOnly) {
  BatchNorm2d norm = fused_norm();
  EXPECT_EQ(fused_calls(norm, images()), 1);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
  norm->eval();
  EXPECT_EQ(fused_calls(norm, images()), 0);
  EXPECT_EQ(norm->num_batches_tracked.item<std::int64_t>(), 1);
}

TEST_F(FusedModuleTest, IsTheReferenceUnlessFusedIsAskedFor) {
  EXPECT_EQ(fused_calls(BatchNorm2d(8), images()), 0);
}

TEST_F(FusedModuleTest, WhatTheKernelsCannotComputeIsLeftToTheReference) {
  EXPECT_EQ(fused_calls(fused_norm(), images().contiguous()), 0);
  BatchNorm2d wide = fused_norm();
  wide->to(at::kDouble);
  EXPECT_EQ(fused_calls(wide, images().to(at::kDouble)), 0);
  BatchNorm2d averaged = fused_norm();
  averaged->options.momentum(std::nullopt);
  EXPECT_EQ(fused_calls(averaged, images()), 0);
  // 4 bytes after an address that kernels can read.
  const at::Tensor x = at::empty({2 * 8 * 3 * 3 + 1}, images().options()).fill_(1);
  const at::Tensor shifted = x.narrow(0, 1, 2 * 8 * 3 * 3).view({2, 3, 3, 8}).permute({0, 3, 1, 2});
  ASSERT_TRUE(shifted.is_contiguous(at::MemoryFormat::ChannelsLast));
  // Calls only can_fuse(), because libtorch's batch norm also fails at this address on a GPU.
  EXPECT_FALSE(can_fuse(shifted));
  EXPECT_FALSE(can_fuse(images({1, 8, 1, 1})));
  // can_fuse() reads only sizes and addresses, no values.
  const auto of_rows = [&](std::int64_t rows) {
    return at::from_blob(x.data_ptr(), {1, 1 << 12, rows, 1 << 10},
                         {rows << 22, 1, std::int64_t{1} << 22, 1 << 12}, x.options());
  };
  EXPECT_TRUE(can_fuse(of_rows(1023)));
  EXPECT_FALSE(can_fuse(of_rows(1024)));
}

TEST_F(FusedModuleTest, StatisticsOfRanksAndChunksAreLeftToTheReference) {
  const auto rank = make_single_rank();
  BatchNorm2d synced = fused_norm(rank.get());
  EXPECT_FALSE(synced->unfused_reason().empty());
  EXPECT_EQ(fused_calls(synced, images()), 0);
  EXPECT_EQ(fused_calls(fused_norm(nullptr, 1), images()), 0);
}

TEST_F(FusedModuleTest, UpdatesStatisticsAsTheReference) {
  BatchNorm2d fused = fused_norm(), reference(8);
  fused->to(fused_device());
  reference->to(fused_device());
  for (int step = 0; step < 4; ++step) {
    const at::Tensor x = images() * (step + 1) + step;
    const auto both = [&](auto&& call) {
      expect_close("y", call(fused), call(reference).to(at::kCPU, at::kDouble), 1e-5, 1e-5);
    };
    if (step % 2 == 0)
      both([&](BatchNorm2d& norm) { return norm->forward_relu(x); });
    else
      both([&](BatchNorm2d& norm) { return norm->forward(x); });
  }
  EXPECT_EQ(CountedKernels::calls().norm_forward, 4);
  const auto wide = [](const at::Tensor& values) { return values.to(at::kCPU, at::kDouble); };
  expect_close("mean", fused->running_mean, wide(reference->running_mean), 1e-5, 1e-5);
  expect_close("var", fused->running_var, wide(reference->running_var), 1e-5, 1e-5);
  EXPECT_TRUE(at::equal(fused->num_batches_tracked, reference->num_batches_tracked));
}

}  // namespace
}  // namespace precast::test
