#include "models/detail/fused_stem.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <limits>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"

namespace precast::models::detail {
namespace {

StemShape stem_shape(const at::Tensor& images) {
  return {images.size(0), static_cast<int>(images.size(2)), static_cast<int>(images.size(3)),
          static_cast<int>(images.size(1)), activation_type(images.scalar_type())};
}

/// [out, C, 7, 7] as [out, 16, 4, 4], in the order of stem_input()'s channels. The first row and
/// column of the 8 x 8 weights that this needs are 0.
at::Tensor stem_weight(const at::Tensor& weight) {
  const at::Tensor padded = at::constant_pad_nd(weight, {1, 0, 1, 0, 0, 4 - weight.size(1)});
  return padded.view({-1, 4, 4, 2, 4, 2})
      .permute({0, 3, 5, 1, 2, 4})
      .reshape({-1, kStemChannels, 4, 4})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace

bool can_fuse_stem(const at::Tensor& images) {
  if (!fused_kernels()->run_on(images)) return false;
  const at::ScalarType type = images.scalar_type();
  if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16) return false;
  return images.dim() == 4 && images.numel() > 0 && images.size(1) <= 4 &&
         images.size(2) % 2 == 0 && images.size(3) % 2 == 0 && !images.requires_grad() &&
         images.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         stem_values(stem_shape(images)) < std::numeric_limits<std::int32_t>::max();
}

at::Tensor fused_stem(const at::Tensor& images, const at::Tensor& weight) {
  require(can_fuse_stem(images), "fused kernels run only where can_fuse_stem() is true");
  const StemShape shape = stem_shape(images);
  const at::Tensor input = at::empty(
      {shape.images, kStemChannels, shape.height / 2 + kStemBorder, shape.width / 2 + kStemBorder},
      images.options().memory_format(at::MemoryFormat::ChannelsLast));
  fused_kernels()->stem_input(images, shape,
                              {.x = images.const_data_ptr(), .y = input.mutable_data_ptr()});
  return at::conv2d(input, stem_weight(weight));
}

}  // namespace precast::models::detail
