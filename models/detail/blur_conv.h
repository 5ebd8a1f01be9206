#pragma once

#include <torch/nn/modules/conv.h>

#include "framework/core/export.h"
#include "models/detail/squeeze_excite.h"

namespace precast::models::detail {

/// torch::nn::Conv2d that can blur its input first, to prevent aliasing (Zhang, ICML 2019, as in
/// ffcv-imagenet). If `blurpool` is set, the stride is above 1 and there are at least 16 input
/// channels, each channel passes through the filter [1,2,1] x [1,2,1] / 16 with zero padding 1.
/// Otherwise, the module behaves like Conv2d. The filter is neither a parameter nor a buffer, so
/// the module has the same names and state as Conv2d.
///
/// Cost of one blurred layer: one depthwise 3x3 convolution. For a 1x1 layer, only the blurred
/// values that its stride selects are computed.
class PRECAST_API BlurConv2dImpl : public torch::nn::Conv2dImpl {
 public:
  BlurConv2dImpl(const torch::nn::Conv2dOptions& conv, bool blurpool);

  /// @param input [N, in_channels, H, W] float32, float16 or bfloat16, any layout and device.
  at::Tensor forward(const at::Tensor& input);
  [[nodiscard]] bool blurs() const { return blurs_; }

  /// In training, lets the layer use the kernels of fused_blur.h if it blurs and can_fuse(input)
  /// (with a 1x1 kernel, only for stride 2), and those of fused_stem.h if it is not grouped and
  /// can_fuse_stem(input).
  void fuse() { fused_ = true; }
  /// Whether this layer blurs and may use fused kernels for the blur; for a 1x1 kernel without
  /// padding, these kernels exist only for stride 2.
  [[nodiscard]] bool fuses_blur() const;
  /// Whether this layer may read RGB images through fused_stem.h.
  [[nodiscard]] bool fuses_stem() const {
    return fused_ && options.in_channels() == 3 && options.groups() == 1;
  }
  /// Whether fused_blur_both(input) can blur the input for both this layer and the 1x1 layer
  /// `other`.
  [[nodiscard]] bool can_share_blur(const BlurConv2dImpl& other, const at::Tensor& input) const;
  /// Convolves an input that is already blurred. @param blurred for a 1x1 kernel, only the pixels
  /// that its stride selects
  at::Tensor forward_blurred(const at::Tensor& blurred);

  /// Adds a squeeze-and-excitation of the output, as the submodule `se`, and draws its weights.
  void add_squeeze_excite(double latent_channels);

 private:
  [[nodiscard]] bool can_fuse_blur(const at::Tensor& input) const;
  /// Blurs `input` for forward_blurred().
  at::Tensor blurred(const at::Tensor& input);
  /// The filter on `input`'s device and with its dtype, which is cached until either changes.
  const at::Tensor& filter_for(const at::Tensor& input);

  bool blurs_ = false;
  bool pointwise_ = false;
  bool fused_ = false;
  at::Tensor filter_;
  SqueezeExcite excite_ = nullptr;
};
TORCH_MODULE(BlurConv2d);

}  // namespace precast::models::detail
