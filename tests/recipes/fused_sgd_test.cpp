// Built twice, see fused_device.h.
#include "recipes/optim/fused_sgd.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "recipes/register.h"
#include "tests/recipes/fused_device.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"

namespace precast::test {
namespace {

/// Parameters with the names, decay groups and layouts of a residual network. One has more elements
/// than a chunk.
std::vector<NamedTensor> create_parameters() {
  const std::vector<std::pair<const char*, std::vector<std::int64_t>>> shapes = {
      {"conv1.weight", {64, 16, 3, 3}},      {"bn1.weight", {6}},   {"bn1.bias", {6}},
      {"downsample.0.weight", {8, 6, 1, 1}}, {"fc.weight", {5, 8}}, {"fc.bias", {5}}};
  std::vector<NamedTensor> parameters;
  for (std::uint32_t stream = 0; stream < shapes.size(); ++stream) {
    const auto& [name, shape] = shapes[stream];
    at::Tensor values = noise_tensor(stream, shape).to(fused_device());
    if (stream == 0) values = values.contiguous(at::MemoryFormat::ChannelsLast);
    parameters.push_back({name, values.requires_grad_()});
  }
  return parameters;
}

void set_gradients(const std::vector<NamedTensor>& parameters, std::uint32_t step) {
  std::uint32_t stream = 100 * (step + 1);
  for (const NamedTensor& parameter : parameters)
    parameter.tensor.mutable_grad() =
        noise_tensor(stream++, parameter.tensor.sizes()).to(fused_device());
}

std::unique_ptr<Optimizer> make_sgd(const std::vector<NamedTensor>& parameters,
                                    const std::string& options) {
  OptimizerRegistry registry("optimizer");
  recipes::register_optimizers(registry);
  return registry.make(part_spec("sgd", options), {parameters});
}

void expect_equal(const std::vector<NamedTensor>& values,
                  const std::vector<NamedTensor>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].name, expected[i].name);
    EXPECT_TRUE(values[i].tensor.allclose(expected[i].tensor, 1e-6, 1e-6)) << values[i].name;
  }
}

class FusedSgdTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
    kernels_.emplace();
  }

 private:
  std::optional<CountedKernels> kernels_;
};

/// sgd_test.cpp compares the reference with torch.
TEST_P(FusedSgdTest, FiveStepsAreThoseOfTheReference) {
  const std::vector<NamedTensor> parameters = create_parameters(), expected = create_parameters();
  const auto fused = make_sgd(parameters, "{kernels: fused, " + GetParam() + "}");
  const auto reference = make_sgd(expected, "{" + GetParam() + "}");
  const Optimizer::Scaled fine{at::full({}, 0.F).to(fused_device())},
      overflow{at::full({}, 1.F).to(fused_device())};
  for (std::uint32_t step = 0; step < 5; ++step) {
    const double lr = 0.4 - 0.05 * step;
    set_gradients(parameters, 50);
    fused->step(lr, overflow);
    for (const auto* of : {&parameters, &expected}) set_gradients(*of, step);
    if (step == 3) {
      for (const auto* of : {&parameters, &expected}) of->back().tensor.mutable_grad().reset();
    }
    fused->step(lr, step % 2 == 0 ? std::optional(fine) : std::nullopt);
    reference->step(lr, std::nullopt);
  }
  expect_equal(parameters, expected);
  expect_equal(fused->state().tensors, reference->state().tensors);
  EXPECT_EQ(CountedKernels::calls().sgd_step, 10);
}

TEST_P(FusedSgdTest, StepsWithTheRateInATensorAreTheSame) {
  const std::vector<NamedTensor> parameters = create_parameters(), expected = create_parameters();
  const auto fused = make_sgd(parameters, "{kernels: fused, " + GetParam() + "}");
  const auto numbers = make_sgd(expected, "{kernels: fused, " + GetParam() + "}");
  ASSERT_TRUE(fused->takes_lr_tensor());
  const at::Tensor lr = at::full({}, 0.F).to(fused_device());
  for (std::uint32_t step = 0; step < 3; ++step) {
    for (const auto* of : {&parameters, &expected}) set_gradients(*of, step);
    lr.fill_(0.5 / (1 + step));
    fused->step_with(lr, std::nullopt);
    numbers->step(0.5 / (1 + step), std::nullopt);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_TRUE(parameters[i].tensor.equal(expected[i].tensor)) << parameters[i].name;
  EXPECT_EQ(CountedKernels::calls().sgd_step, 6);
}

/// Compares step_scaled() with gradients that were unscaled and clipped before the step.
TEST_P(FusedSgdTest, AScaledStepUnscalesAndClips) {
  const std::vector<NamedTensor> parameters = create_parameters(), expected = create_parameters();
  const auto fused = make_sgd(parameters, "{kernels: fused, " + GetParam() + "}");
  const auto reference = make_sgd(expected, "{" + GetParam() + "}");
  const at::Tensor scale = at::full({}, 8.F).to(fused_device()),
                   found_inf = at::full({}, 7.F).to(fused_device());
  for (std::uint32_t step = 0; step < 3; ++step) {
    for (const auto* of : {&parameters, &expected}) set_gradients(*of, step);
    double squares = 0;
    std::vector<at::Tensor> all;
    for (const NamedTensor& parameter : parameters) {
      squares += parameter.tensor.grad().square().sum().item<double>();
      parameter.tensor.mutable_grad().mul_(scale);
      all.push_back(parameter.tensor);
    }
    const double max_norm = 0.25 * std::sqrt(squares);
    for (const NamedTensor& parameter : expected) parameter.tensor.mutable_grad().mul_(0.25);
    EXPECT_TRUE(fused->step_scaled({.parameters = all,
                                    .lr = 0.1,
                                    .scale = scale,
                                    .max_norm = max_norm,
                                    .found_inf = found_inf}));
    reference->step(0.1, std::nullopt);
    EXPECT_EQ(found_inf.item<double>(), 0);
  }
  expect_equal(parameters, expected);
  expect_equal(fused->state().tensors, reference->state().tensors);
}

TEST_P(FusedSgdTest, AScaledStepNeedsAllParametersAndNoOthers) {
  const std::vector<NamedTensor> parameters = create_parameters();
  set_gradients(parameters, 0);
  std::vector<at::Tensor> all;
  for (const NamedTensor& parameter : parameters) all.push_back(parameter.tensor);
  const std::vector<at::Tensor> fewer(all.begin() + 1, all.end());
  const std::vector<NamedTensor> own(parameters.begin() + 1, parameters.end());
  const std::string options = GetParam() + "}";
  const auto fused = make_sgd(own, "{kernels: fused, " + options);
  EXPECT_FALSE(fused->step_scaled({.parameters = all, .max_norm = 1}));
  EXPECT_FALSE(make_sgd(own, "{" + options)->step_scaled({.parameters = fewer, .max_norm = 1}));
  EXPECT_EQ(CountedKernels::calls(), FusedCalls());
  EXPECT_TRUE(fused->step_scaled({.parameters = fewer, .max_norm = 1}));
  EXPECT_EQ(CountedKernels::calls(), (FusedCalls{.gradient_norm = 1, .sgd_step = 1}));
}

TEST_P(FusedSgdTest, WithoutGradientsNothingChanges) {
  const std::vector<NamedTensor> parameters = create_parameters();
  make_sgd(parameters, "{kernels: fused, " + GetParam() + "}")->step(0.1, std::nullopt);
  expect_equal(parameters, create_parameters());
}

INSTANTIATE_TEST_SUITE_P(Options, FusedSgdTest,
                         ::testing::Values("weight_decay: 0.05",
                                           "weight_decay: 0.05, nesterov: true",
                                           "momentum: 0, decay_groups: clean"));

TEST(FusedSgdChoiceTest, KernelsRunOnlyIfTheRecipeSaysSoAndTheyCan) {
  if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
  const CountedKernels kernels;
  const auto calls = [&](const std::string& options, at::ScalarType type) {
    CountedKernels::reset();
    const at::Tensor values = noise_tensor(0, {6, 8}).to(fused_device(), type);
    const std::vector<NamedTensor> parameters = {{"fc.weight", values.requires_grad_()}};
    values.mutable_grad() = noise_tensor(1, {6, 8}).to(fused_device(), type);
    make_sgd(parameters, options)->step(0.1, std::nullopt);
    return CountedKernels::calls().sgd_step;
  };
  EXPECT_EQ(calls("{kernels: fused}", at::kFloat), 1);
  EXPECT_EQ(calls("{kernels: fused}", at::kDouble), 0);
  EXPECT_EQ(calls("{kernels: auto}", at::kFloat), 0);
  EXPECT_EQ(calls("{}", at::kFloat), 0);
}

}  // namespace
}  // namespace precast::test
