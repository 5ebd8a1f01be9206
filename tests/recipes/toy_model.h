#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/api/model.h"

namespace precast::test {

/// A model without a forward pass (classify() returns its input) and with a few parameters named
/// like those of a residual network. Parameters and gradients are those of
/// tests/golden/toy_model.py.
class ToyModel final : public ImageModel {
 public:
  ToyModel();
  [[nodiscard]] at::Tensor classify(const at::Tensor& images) override { return images; }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> state() const override;
  void train(bool) override {}
  void to(at::Device, bool channels_last) override;

  /// Sets the gradients of one step of the golden.
  void set_gradients(std::uint32_t step);

 private:
  std::vector<NamedTensor> parameters_;
};

/// All elements in row-major order, one tensor after the other.
[[nodiscard]] std::vector<double> flat(const std::vector<at::Tensor>& tensors);
[[nodiscard]] std::vector<at::Tensor> values_of(const std::vector<NamedTensor>& tensors);

}  // namespace precast::test
