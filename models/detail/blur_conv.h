#pragma once

#include <torch/nn/modules/conv.h>

#include "framework/core/export.h"
#include "models/detail/squeeze_excite.h"

namespace precast::models::detail {

/// torch::nn::Conv2d that can blur its input first, so that a stride does not alias (Zhang, ICML
/// 2019, in ffcv-imagenet's form): with `blurpool`, a stride above 1 and at least 16 input
/// channels, each channel passes through the filter [1,2,1] x [1,2,1] / 16 with zero padding 1.
/// Otherwise it is Conv2d. The filter is neither a parameter nor a buffer: names and state stay
/// Conv2d's.
///
/// Cost of one blurred layer: one depthwise 3x3 convolution. For a 1x1 layer, only the blurred
/// values at the positions of its stride are computed.
class PRECAST_API BlurConv2dImpl : public torch::nn::Conv2dImpl {
 public:
  BlurConv2dImpl(const torch::nn::Conv2dOptions& conv, bool blurpool);

  /// @param input [N, in_channels, H, W] float32, float16 or bfloat16, any layout and device.
  at::Tensor forward(const at::Tensor& input);
  [[nodiscard]] bool blurs() const { return blurs_; }

  /// Lets the kernels of fused_blur.h blur in training, where can_fuse(input).
  void fuse() { fused_ = blurs_; }
  /// Whether those kernels may blur.
  [[nodiscard]] bool is_fused() const { return fused_; }
  /// Whether the kernels blur `input`, and also make what the 1x1 convolution `other` reads.
  [[nodiscard]] bool blurs_also_for(const BlurConv2dImpl& other, const at::Tensor& input) const;
  /// The convolution of an image that is already blurred. @param blurred for a 1x1 kernel, only the
  /// pixels at the positions of its stride
  at::Tensor forward_blurred(const at::Tensor& blurred);

  /// Adds a squeeze-and-excitation of the output, as the submodule `se`, and draws its weights.
  void add_squeeze_excite(double latent_channels);

 private:
  [[nodiscard]] bool blurs_by_kernels(const at::Tensor& input) const;
  /// The blurred input that forward_blurred() takes.
  at::Tensor blurred(const at::Tensor& input);
  /// The filter for `input`'s device and dtype; created once for each of them.
  const at::Tensor& filter_for(const at::Tensor& input);

  bool blurs_ = false;
  bool pointwise_ = false;
  bool fused_ = false;
  at::Tensor filter_;
  SqueezeExcite excite_ = nullptr;
};
TORCH_MODULE(BlurConv2d);

}  // namespace precast::models::detail
