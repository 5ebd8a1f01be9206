#include "models/detail/blur_conv.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <variant>

#include "models/detail/fused_blur.h"
#include "models/detail/fused_norm.h"
#include "models/detail/fused_stem.h"

namespace precast::models::detail {
namespace {

using Sides = at::IntArrayRef;

constexpr std::int64_t kMinBlurredChannels = 16;
constexpr std::array<std::int64_t, 2> kZeros{0, 0};
constexpr std::array<std::int64_t, 2> kOnes{1, 1};
constexpr std::array<std::int64_t, 2> kTwos{2, 2};

bool above_one(Sides sizes) {
  return std::ranges::any_of(sizes, [](std::int64_t size) { return size > 1; });
}

/// A 1x1 kernel without padding reads only the positions that its stride selects.
bool is_pointwise(const torch::nn::Conv2dOptions& conv) {
  const auto* padding = std::get_if<torch::ExpandingArray<2>>(&conv.padding());
  return !above_one(*conv.kernel_size()) && padding != nullptr &&
         std::ranges::all_of(**padding, [](std::int64_t size) { return size == 0; });
}

}  // namespace

BlurConv2dImpl::BlurConv2dImpl(const torch::nn::Conv2dOptions& conv, bool blurpool)
    : Conv2dImpl(conv),
      blurs_(blurpool && above_one(*conv.stride()) && conv.in_channels() >= kMinBlurredChannels),
      pointwise_(is_pointwise(conv)) {}

at::Tensor BlurConv2dImpl::forward(const at::Tensor& input) {
  if (blurs_) return forward_blurred(blurred(input));
  const bool pads = fuses_stem() && is_training() && can_fuse_stem(input);
  const at::Tensor output =
      pads ? _conv_forward(stem_images(input), stem_weight(weight)) : Conv2dImpl::forward(input);
  return excite_ ? excite_(output) : output;
}

void BlurConv2dImpl::add_squeeze_excite(double latent_channels) {
  excite_ = register_module("se", SqueezeExcite(options.out_channels(), latent_channels));
}

bool BlurConv2dImpl::fuses_blur() const {
  return fused_ && blurs_ && (!pointwise_ || std::ranges::equal(Sides(*options.stride()), kTwos));
}

bool BlurConv2dImpl::can_fuse_blur(const at::Tensor& input) const {
  return fuses_blur() && is_training() && can_fuse(input);
}

bool BlurConv2dImpl::can_share_blur(const BlurConv2dImpl& other, const at::Tensor& input) const {
  return !pointwise_ && other.pointwise_ && can_fuse_blur(input) && other.can_fuse_blur(input);
}

at::Tensor BlurConv2dImpl::blurred(const at::Tensor& input) {
  if (can_fuse_blur(input)) return pointwise_ ? fused_blur_even(input) : fused_blur(input);
  // The blur can apply the stride itself only before a 1x1 kernel.
  const Sides stride = pointwise_ ? Sides(*options.stride()) : Sides(kOnes);
  return at::conv2d(input, filter_for(input), /*bias=*/{}, stride, /*padding=*/kOnes,
                    /*dilation=*/kOnes, /*groups=*/options.in_channels());
}

at::Tensor BlurConv2dImpl::forward_blurred(const at::Tensor& blurred) {
  const at::Tensor output =
      pointwise_ ? at::conv2d(blurred, weight, bias, /*stride=*/kOnes, /*padding=*/kZeros,
                              /*dilation=*/kOnes, options.groups())
                 : Conv2dImpl::forward(blurred);
  return excite_ ? excite_(output) : output;
}

const at::Tensor& BlurConv2dImpl::filter_for(const at::Tensor& input) {
  if (filter_.defined() && filter_.device() == input.device() &&
      filter_.scalar_type() == input.scalar_type()) {
    return filter_;
  }
  // Not an inference tensor, because a filter that is created during an evaluation must be usable
  // in a later backward pass.
  const c10::InferenceMode training(false);
  const at::Tensor kernel = at::tensor({1., 2., 1., 2., 4., 2., 1., 2., 1.}) / 16.;
  filter_ = kernel.to(input.device(), input.scalar_type())
                .view({1, 1, 3, 3})
                .repeat({options.in_channels(), 1, 1, 1});
  return filter_;
}

}  // namespace precast::models::detail
