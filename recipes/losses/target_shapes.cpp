#include "recipes/losses/target_shapes.h"

#include "framework/core/error.h"

namespace precast::recipes {

at::Tensor values_like(const at::Tensor& outputs, const at::Tensor& target) {
  const bool flat = outputs.dim() <= 2 || target.dim() <= 2;
  require(outputs.sizes() == target.sizes() ||
              (flat && outputs.dim() > 0 && target.dim() > 0 && outputs.size(0) == target.size(0) &&
               outputs.numel() == target.numel()),
          "outputs and targets have the same number of values per sample");
  return target.reshape(outputs.sizes());
}

at::Tensor pixel_classes(const at::Tensor& outputs, const at::Tensor& target) {
  require(outputs.dim() == 4 && target.dim() == 3 && outputs.size(0) == target.size(0) &&
              outputs.size(2) == target.size(1) && outputs.size(3) == target.size(2),
          "outputs are [N, classes, H, W] and targets [N, H, W]");
  require(!target.is_floating_point(), "classes of pixels are integers");
  return target.to(at::kLong);
}

void require_multi_hot(const at::Tensor& outputs, const at::Tensor& target) {
  require(outputs.dim() == 2 && outputs.sizes() == target.sizes(),
          "outputs and targets are [N, classes]");
}

void require_class_index(const at::Tensor& outputs, const at::Tensor& target) {
  require(outputs.dim() == 2 && target.dim() == 1 && target.size(0) == outputs.size(0) &&
              target.scalar_type() == at::kLong,
          "outputs are [N, classes] and targets [N] int64");
}

}  // namespace precast::recipes
