#include "tests/recipes/toy_model.h"

#include <ATen/core/grad_mode.h>

#include "tests/support/noise_tensor.h"

namespace precast::test {

ToyModel::ToyModel() {
  const std::vector<std::pair<const char*, std::vector<std::int64_t>>> shapes = {
      {"conv1.weight", {6, 3, 3, 3}},
      {"bn1.weight", {6}},
      {"bn1.bias", {6}},
      {"downsample.0.weight", {8, 6, 1, 1}},
      {"downsample.1.weight", {8}},
      {"fc.weight", {5, 8}},
      {"fc.bias", {5}}};
  for (std::uint32_t stream = 0; stream < shapes.size(); ++stream) {
    const auto& [name, shape] = shapes[stream];
    parameters_.push_back({name, noise_tensor(stream, shape).requires_grad_(true)});
  }
}

std::vector<NamedTensor> ToyModel::state() const {
  std::vector<NamedTensor> state;
  for (const NamedTensor& parameter : parameters_)
    state.push_back({parameter.name, parameter.tensor.detach()});
  return state;
}

void ToyModel::to(at::Device, bool channels_last) {
  const at::NoGradGuard no_grad;
  for (const NamedTensor& parameter : parameters_) {
    if (parameter.tensor.dim() != 4) continue;
    parameter.tensor.set_data(parameter.tensor.contiguous(
        channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous));
  }
}

void ToyModel::set_gradients(std::uint32_t step) {
  std::uint32_t stream = 100 * (step + 1);
  for (const NamedTensor& parameter : parameters_)
    parameter.tensor.mutable_grad() = noise_tensor(stream++, parameter.tensor.sizes());
}

std::vector<double> flat(const std::vector<at::Tensor>& tensors) {
  std::vector<double> all;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = tensor.detach().to(at::kDouble).contiguous();
    const double* value = values.const_data_ptr<double>();
    all.insert(all.end(), value, value + values.numel());
  }
  return all;
}

std::vector<at::Tensor> values_of(const std::vector<NamedTensor>& tensors) {
  std::vector<at::Tensor> values;
  for (const NamedTensor& entry : tensors) values.push_back(entry.tensor);
  return values;
}

}  // namespace precast::test
