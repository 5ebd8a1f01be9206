#include "models/detail/fused_stem.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"

namespace precast::models::detail {

bool can_fuse_stem(const at::Tensor& images) {
  if (!fused_kernels()->supports(images)) return false;
  const at::ScalarType type = images.scalar_type();
  return (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) && images.dim() == 4 &&
         images.size(1) == kImageChannels && images.numel() > 0 && !images.requires_grad() &&
         images.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor stem_images(const at::Tensor& images) {
  require(can_fuse_stem(images), "fused kernels run only where can_fuse_stem() is true");
  const at::Tensor padded =
      at::empty({images.size(0), kPaddedChannels, images.size(2), images.size(3)},
                images.options().memory_format(at::MemoryFormat::ChannelsLast));
  const StemShape shape{images.numel() / kImageChannels, activation_type(images.scalar_type())};
  fused_kernels()->stem_input(images, shape,
                              {.x = images.const_data_ptr(), .y = padded.mutable_data_ptr()});
  return padded;
}

at::Tensor stem_weight(const at::Tensor& weight) {
  return at::constant_pad_nd(weight, {0, 0, 0, 0, 0, kPaddedChannels - weight.size(1)})
      .contiguous(at::MemoryFormat::ChannelsLast);
}

}  // namespace precast::models::detail
