#include "recipes/losses/pixel_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "recipes/losses/target_shapes.h"

namespace precast::recipes {
namespace {

class PixelCrossEntropy final : public TargetLoss {
 public:
  explicit PixelCrossEntropy(std::int64_t ignore_index) : ignore_index_(ignore_index) {}

  [[nodiscard]] TargetKind target_kind() const override { return TargetKind::class_mask; }
  [[nodiscard]] at::Tensor mean(const at::Tensor& logits, const at::Tensor& masks) const override {
    const at::Tensor classes = pixel_classes(logits, masks);
    return pixels(logits, classes).sum() / counted(classes).sum().clamp_min(1);
  }
  [[nodiscard]] at::Tensor each(const at::Tensor& logits, const at::Tensor& masks) const override {
    const at::Tensor classes = pixel_classes(logits, masks);
    return pixels(logits, classes).flatten(1).sum(1) /
           counted(classes).flatten(1).sum(1).clamp_min(1);
  }

 private:
  /// The loss of each pixel, [N, H, W]; 0 for pixels that are ignored.
  [[nodiscard]] at::Tensor pixels(const at::Tensor& logits, const at::Tensor& classes) const {
    return at::cross_entropy_loss(logits.to(at::kFloat), classes, /*weight=*/{},
                                  at::Reduction::None, ignore_index_);
  }
  [[nodiscard]] at::Tensor counted(const at::Tensor& classes) const {
    return classes.ne(ignore_index_);
  }

  std::int64_t ignore_index_;
};

}  // namespace

void PixelCrossEntropyOptions::options(Schema& schema) {
  schema.add("ignore_index", &ignore_index, "class whose pixels are ignored; -1: none").min(-1);
}

std::unique_ptr<Loss> make_pixel_cross_entropy(const PixelCrossEntropyOptions& options) {
  return std::make_unique<PixelCrossEntropy>(options.ignore_index);
}

}  // namespace precast::recipes
