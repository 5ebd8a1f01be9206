#pragma once

#include <torch/nn/modules/linear.h>

#include <cstdint>

#include "framework/core/export.h"

namespace precast::models::detail {

/// Squeeze-and-excitation (Hu et al., CVPR 2018) in Composer's form: each channel is multiplied by
/// sigmoid(fc2(relu(fc1(means of all channels)))); the two layers have no bias.
class PRECAST_API SqueezeExciteImpl : public torch::nn::Module {
 public:
  /// @param latent_channels width of the hidden layer; below 1, a fraction of `channels`.
  SqueezeExciteImpl(std::int64_t channels, double latent_channels);

  /// @param input [N, channels, H, W]. @return the same shape and layout.
  at::Tensor forward(const at::Tensor& input);

 private:
  torch::nn::Linear fc1_ = nullptr;
  torch::nn::Linear fc2_ = nullptr;
};
TORCH_MODULE(SqueezeExcite);

}  // namespace precast::models::detail
