#pragma once

#include <cstdint>
#include <memory>

#include "framework/api/model.h"
#include "framework/api/model_spec.h"
#include "framework/core/config/schema.h"

namespace precast::models {

/// The `model.params` of the model `layers`.
struct DescribedOptions {
  /// See make_described.
  ConfigNode layers;
  /// Side of the images in px, required for a flatten without a global pool before it; 0: any size.
  std::int64_t image_size = 0;
  /// Number of values per sample if the input is an array; 0: the input is an image.
  std::int64_t features = 0;

  void options(Schema& schema);
};

/// A chain of layers that the recipe describes. Its input consists of images [N, in_channels, H, W]
/// or, with `features`, arrays of any type with that number of values per sample.
///
///   layers      a list, each entry `name` or `name: {options}`:
///     conv      out (required; 0: the number of classes), kernel (3), stride (1),
///               padding (-1: kernel / 2), groups (1), bias (true)
///     bn        batch norm
///     relu, gelu
///     max_pool, avg_pool   kernel (2), stride (0: the same as kernel), padding (0)
///     global_avg_pool, global_max_pool   [N, C, H, W] -> [N, C, 1, 1]
///     flatten              [N, C, H, W] -> [N, C * H * W]
///     linear    out (0: the number of classes), bias (true)
///     upsample  scale (2): repeats each pixel
///     scale     factor (required): multiplies each value
///     dropout   p (0.5)
///     residual  layers (required), shortcut (not given: the identity): adds their outputs
///
/// Names, order and initial weights are those of Python's torch.nn.Sequential with the same layers
/// ("0.weight"; within a residual "3.layers.0.weight", "3.shortcut.0.weight"). BlurPool and
/// synchronised batch statistics work as in the other models. The shapes are computed and checked
/// layer by layer. The output must be [N, classes], or, for masks (TargetKind::class_mask), [N,
/// classes, H, W]. For TargetKind::values, the output may also be images of any shape; without
/// targets, it may have any shape. If `num_classes` is 1, the number of outputs is not checked,
/// because 1 is also the value before the dataset has been read.
/// @throws ConfigError with the position of the layer if a layer is unknown, its options are wrong,
/// or shapes do not match; also for `num_classes` below 1, and if `layers` is not a list or empty.
/// forward() throws it as well, if a layer does not work on images of this size.
[[nodiscard]] std::unique_ptr<Model> make_described(const ModelSpec& spec,
                                                    const DescribedOptions& options);

}  // namespace precast::models
