#include "models/detail/squeeze_excite.h"

#include <algorithm>

namespace precast::models::detail {

SqueezeExciteImpl::SqueezeExciteImpl(std::int64_t channels, double latent_channels) {
  const double share = latent_channels < 1 ? static_cast<double>(channels) : 1;
  const auto latent = std::max<std::int64_t>(1, static_cast<std::int64_t>(latent_channels * share));
  fc1_ = register_module("fc1",
                         torch::nn::Linear(torch::nn::LinearOptions(channels, latent).bias(false)));
  fc2_ = register_module("fc2",
                         torch::nn::Linear(torch::nn::LinearOptions(latent, channels).bias(false)));
}

at::Tensor SqueezeExciteImpl::forward(const at::Tensor& input) {
  const at::Tensor means = input.mean({2, 3});
  const at::Tensor shares = fc2_(fc1_(means).relu()).sigmoid();
  return input * shares.view({input.size(0), input.size(1), 1, 1});
}

}  // namespace precast::models::detail
