#include "models/detail/module_model.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

/// A user's own network, as in a plug-in.
struct Net : torch::nn::Module {
  Net() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 4, 3)));
    norm = register_module("norm", torch::nn::BatchNorm2d(4));
  }
  at::Tensor forward(const at::Tensor& images) { return norm(conv(images)).mean({2, 3}); }

  torch::nn::Conv2d conv = nullptr;
  torch::nn::BatchNorm2d norm = nullptr;
};

std::vector<std::string> names(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> all;
  for (const NamedTensor& entry : tensors) all.push_back(entry.name);
  return all;
}

TEST(ModuleModelTest, StateInterleavesBuffersAsPythonDoes) {
  const auto model = models::detail::as_model(std::make_shared<Net>());
  EXPECT_EQ(names(model->parameters()),
            (std::vector<std::string>{"conv.weight", "conv.bias", "norm.weight", "norm.bias"}));
  EXPECT_EQ(names(model->state()),
            (std::vector<std::string>{"conv.weight", "conv.bias", "norm.weight", "norm.bias",
                                      "norm.running_mean", "norm.running_var",
                                      "norm.num_batches_tracked"}));
}

/// A network of two layers. If it is tied, `first` and `second` name the same layer, and its bias
/// has a third name.
struct TiedNet : torch::nn::Module {
  explicit TiedNet(bool tied) {
    first = register_module("first", torch::nn::Linear(3, 3));
    second = register_module("second", tied ? first : torch::nn::Linear(3, 3));
    if (tied) register_parameter("bias", first->bias);
  }
  at::Tensor forward(const at::Tensor& inputs) { return first(first(inputs)); }

  torch::nn::Linear first = nullptr, second = nullptr;
};

TEST(ModuleModelTest, ATensorWithTwoNamesIsOneParameter) {
  const auto model = models::detail::as_model(std::make_shared<TiedNet>(/*tied=*/true));
  EXPECT_EQ(names(model->parameters()), (std::vector<std::string>{"bias", "first.weight"}))
      << "Python's named_parameters()";
  EXPECT_EQ(names(model->state()), (std::vector<std::string>{"bias", "first.weight", "first.bias",
                                                             "second.weight", "second.bias"}))
      << "Python's state_dict()";
}

TEST(ModuleModelTest, AStepWithTwoNamesIsThatWithOne) {
  const auto tied_net = std::make_shared<TiedNet>(/*tied=*/true);
  const auto net = std::make_shared<TiedNet>(/*tied=*/false);
  {
    const at::NoGradGuard no_grad;
    net->first->weight.copy_(tied_net->first->weight);
    net->first->bias.copy_(tied_net->first->bias);
  }
  for (const auto& each : {tied_net, net}) {
    const auto model = models::detail::as_model(each);
    model->forward(make_batch(noise_tensor(1, {4, 3}))).square().sum().backward();
    const at::NoGradGuard no_grad;
    for (const NamedTensor& parameter : model->parameters()) {
      if (parameter.tensor.grad().defined()) parameter.tensor.sub_(parameter.tensor.grad(), 0.1);
    }
  }
  EXPECT_TRUE(at::equal(tied_net->first->weight, net->first->weight));
  EXPECT_TRUE(at::equal(tied_net->first->bias, net->first->bias));
}

TEST(ModuleModelTest, WritingToTheStateChangesTheModel) {
  const auto model = models::detail::as_model(std::make_shared<Net>());
  model->state().front().tensor.fill_(0.5);
  EXPECT_EQ(model->parameters().front().tensor.min().item<double>(), 0.5);
  EXPECT_TRUE(model->parameters().front().tensor.requires_grad());
}

TEST(ModuleModelTest, MovesWeightsToChannelsLastAndBackInPlace) {
  const auto model = models::detail::as_model(std::make_shared<Net>());
  const at::Tensor weight = model->parameters().front().tensor;
  const at::Tensor before = weight.detach().clone();

  model->to(at::kCPU, /*channels_last=*/true);
  EXPECT_TRUE(weight.is_contiguous(at::MemoryFormat::ChannelsLast))
      << "the tensor is changed in place";
  EXPECT_FALSE(weight.is_contiguous());
  EXPECT_TRUE(at::equal(weight, before));

  model->to(at::kCPU, /*channels_last=*/false);
  EXPECT_TRUE(weight.is_contiguous());
  EXPECT_TRUE(at::equal(weight, before));
}

TEST(ModuleModelTest, TrainingCountsBatchesAndEvaluationDoesNot) {
  const auto model = models::detail::as_model(std::make_shared<Net>());
  const at::Tensor images = noise_tensor(1, {2, 3, 8, 8});
  model->train(true);
  (void)model->forward(make_batch(images));
  model->train(false);
  (void)model->forward(make_batch(images));
  EXPECT_EQ(model->state().back().tensor.item<std::int64_t>(), 1);
}

}  // namespace
}  // namespace precast::test
