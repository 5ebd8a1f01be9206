#pragma once

#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

struct PixelCrossEntropyOptions {
  /// Pixels of this class are ignored; -1: all pixels count.
  std::int64_t ignore_index = 255;

  void options(Schema& schema);
};

/// Cross entropy of logits [N, classes, H, W] and masks [N, H, W] that contain classes, in any
/// integer type, like torch.nn.CrossEntropyLoss(ignore_index=i): the mean over the pixels of the
/// batch that are not ignored, or 0 if all are ignored. per_sample() returns this mean for each
/// sample. Computed in float32 whatever the dtype of the logits. Calls throw std::logic_error for
/// other shapes.
[[nodiscard]] std::unique_ptr<Loss> make_pixel_cross_entropy(
    const PixelCrossEntropyOptions& options);

}  // namespace precast::recipes
