#include "tests/framework/distributed/small_network.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>

#include "tests/support/noise_tensor.h"

namespace precast::test {
namespace {

constexpr std::int64_t kInputs = 40, kHidden = 64, kOutputs = 10;

}  // namespace

SmallNetwork::SmallNetwork(at::Device device)
    : samples_(noise_tensor(1, {kSamples, kInputs}, 2).to(device)),
      targets_(noise_tensor(2, {kSamples, kOutputs}, 2).to(device)) {
  const auto add = [&](const char* name, at::IntArrayRef shape) {
    const auto stream = static_cast<std::uint32_t>(10 + parameters_.size());
    parameters_.push_back({name, noise_tensor(stream, shape).to(device).requires_grad_()});
  };
  add("1.weight", {kHidden, kInputs});
  add("1.bias", {kHidden});
  add("2.weight", {kOutputs, kHidden});
  add("2.bias", {kOutputs});
}

at::Tensor SmallNetwork::loss(std::int64_t first, std::int64_t count) const {
  at::Tensor x = samples_.narrow(0, first, count);
  x = at::relu(at::linear(x, parameters_[0].tensor, parameters_[1].tensor));
  x = at::linear(x, parameters_[2].tensor, parameters_[3].tensor);
  return (x - targets_.narrow(0, first, count)).square().mean();
}

void SmallNetwork::clear_gradients() const {
  for (const NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

at::Tensor SmallNetwork::gradients() const {
  std::vector<at::Tensor> all;
  for (const NamedTensor& parameter : parameters_)
    all.push_back(parameter.tensor.grad().flatten().cpu());
  return at::cat(all);
}

at::Tensor SmallNetwork::weights() const {
  std::vector<at::Tensor> all;
  for (const NamedTensor& parameter : parameters_)
    all.push_back(parameter.tensor.detach().flatten().cpu());
  return at::cat(all);
}

void SmallNetwork::sgd_step(double lr) const {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters_)
    parameter.tensor.sub_(parameter.tensor.grad(), lr);
}

}  // namespace precast::test
