#include "tests/models/split_batch.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>

#include <array>
#include <mutex>

#include "tests/support/noise_tensor.h"
#include "tests/support/thread_ranks.h"

namespace precast::test {
namespace {

constexpr std::int64_t kChannels = 24;
constexpr std::int64_t kHeight = 5, kWidth = 7;

/// The batch and the gradient of the output, [N, C, H, W], rounded to the type under test.
struct Problem {
  at::Tensor x, gradient;
  /// [C]
  at::Tensor weight, bias;
};

/// The results: [N, C, H, W], or [C].
struct Outcome {
  at::Tensor y, x_gradient;
  at::Tensor weight_gradient, bias_gradient;
  at::Tensor running_mean, running_var;
};

Problem make_problem(const SplitBatch& split) {
  const std::int64_t images = split.first + split.second;
  Problem problem;
  problem.x = noise_tensor(1, {images, kChannels, kHeight, kWidth}, 3);
  // The parts of the two ranks differ, so that separate statistics would give different results.
  problem.x.narrow(0, 0, split.first).add_(1.5);
  problem.x = problem.x.to(split.type);
  problem.gradient =
      noise_tensor(2, {images, kChannels, kHeight, kWidth}).add_(0.25).to(split.type);
  problem.weight = noise_tensor(3, {kChannels}).add_(1);
  problem.bias = noise_tensor(4, {kChannels});
  return problem;
}

Outcome in_one_piece(const Problem& problem) {
  torch::nn::BatchNorm2d norm(kChannels);
  norm->to(at::kDouble);
  {
    const at::NoGradGuard no_grad;
    norm->weight.copy_(problem.weight);
    norm->bias.copy_(problem.bias);
  }
  const at::Tensor x = problem.x.to(at::kDouble).requires_grad_();
  const at::Tensor y = norm(x);
  y.backward(problem.gradient.to(at::kDouble));
  return {.y = y.detach(),
          .x_gradient = x.grad(),
          .weight_gradient = norm->weight.grad(),
          .bias_gradient = norm->bias.grad(),
          .running_mean = norm->running_mean,
          .running_var = norm->running_var};
}

Outcome of_rank(const Normalize& normalize, const SplitBatch& split, const Problem& problem,
                Communicator& ranks) {
  const bool leads = ranks.rank() == 0;
  const auto mine = [&](const at::Tensor& all) {
    const at::Tensor part =
        all.narrow(0, leads ? 0 : split.first, leads ? split.first : split.second);
    return part.to(split.device)
        .clone(split.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
  };
  const at::Tensor x = mine(problem.x).requires_grad_();
  const at::Tensor weight = problem.weight.to(split.device, at::kFloat, false, /*copy=*/true);
  const at::Tensor bias = problem.bias.to(split.device, at::kFloat, false, /*copy=*/true);
  const models::detail::SyncBatchNorm norm = {
      .weight = weight.requires_grad_(),
      .bias = bias.requires_grad_(),
      .running_mean = at::zeros({kChannels}, weight.options().requires_grad(false)),
      .running_var = at::ones({kChannels}, weight.options().requires_grad(false)),
      .ranks = &ranks};
  const at::Tensor y = normalize(x, norm);
  EXPECT_EQ(y.scalar_type(), split.type);
  EXPECT_TRUE(y.is_contiguous(x.suggest_memory_format()));
  // Contiguous, like the gradient from a layer that ignores memory formats.
  y.backward(mine(problem.gradient).contiguous());
  return {.y = y.detach(),
          .x_gradient = x.grad(),
          .weight_gradient = weight.grad(),
          .bias_gradient = bias.grad(),
          .running_mean = norm.running_mean,
          .running_var = norm.running_var};
}

/// The tolerance for sums of values of the type, relative to the largest value.
double tolerance_of(at::ScalarType type) {
  return type == at::kHalf ? 1e-3 : type == at::kBFloat16 ? 8e-3 : 1e-5;
}

void expect_near(const at::Tensor& found, const at::Tensor& expected, double tolerance,
                 const char* what) {
  const at::Tensor difference = (found.cpu().to(at::kDouble) - expected).abs().max();
  EXPECT_LE((difference / expected.abs().max()).item<double>(), tolerance) << what;
}

std::mutex called_mutex;
std::set<std::string> called;

std::unique_ptr<at::ObserverContext> note_name(const at::RecordFunction& function) {
  const std::scoped_lock lock(called_mutex);
  called.insert(function.name());
  return nullptr;
}

}  // namespace

void expect_one_batch(const Normalize& normalize, const SplitBatch& split) {
  const Problem problem = make_problem(split);
  const Outcome expected = in_one_piece(problem);
  std::array<Outcome, 2> found;
  run_as_ranks(2, [&](Communicator& ranks) {
    found.at(static_cast<std::size_t>(ranks.rank())) = of_rank(normalize, split, problem, ranks);
  });
  const auto both = [&](at::Tensor Outcome::*part) {
    return at::cat({found[0].*part, found[1].*part});
  };
  const double loose = tolerance_of(split.type);
  const double tight = tolerance_of(at::kFloat);
  // libtorch's kernel for contiguous tensors rounds each addend of these sums to the type.
  const bool rounds = split.device.is_cuda() && !split.channels_last;
  const double sums = rounds ? 4 * loose : tight;
  expect_near(both(&Outcome::y), expected.y, loose, "output");
  expect_near(both(&Outcome::x_gradient), expected.x_gradient, loose, "gradient of the input");
  expect_near(found[0].weight_gradient + found[1].weight_gradient, expected.weight_gradient, sums,
              "gradient of the weight");
  expect_near(found[0].bias_gradient + found[1].bias_gradient, expected.bias_gradient, sums,
              "gradient of the bias");
  for (const Outcome& rank : found) {
    expect_near(rank.running_mean, expected.running_mean, tight, "running mean");
    expect_near(rank.running_var, expected.running_var, tight, "running variance");
  }
}

std::set<std::string> operators_called(const std::function<void()>& body) {
  called.clear();
  const at::CallbackHandle handle = at::addGlobalCallback(
      at::RecordFunctionCallback(note_name).scopes({at::RecordScope::FUNCTION}));
  body();
  at::removeCallback(handle);
  const std::scoped_lock lock(called_mutex);
  return called;
}

std::set<std::string> waiting_operators(const std::set<std::string>& all) {
  std::set<std::string> waiting;
  for (const char* name : {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero",
                           "aten::nonzero", "aten::masked_select", "aten::equal"}) {
    if (all.contains(name)) waiting.insert(name);
  }
  return waiting;
}

}  // namespace precast::test
