#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/image/element_type.h"
#include "data/image/normalize.h"
#include "data/image/pixels.h"
#include "data/resample/resize.h"
#include "data/transforms/crop.h"
#include "data/transforms/transform.h"
#include "framework/core/config/node.h"
#include "framework/core/export.h"

namespace precast::data {

/// One transform and its position.
struct PipelineStep {
  std::shared_ptr<const Transform> transform;
  /// The key of the step's random numbers: its name and the number of earlier steps with that name,
  /// such as `rotate/0`.
  std::string random_key;
  /// For messages: `pipeline.train[2]`, and its location in the recipe.
  std::string key;
  Origin origin;
};

/// A position in a recipe: `pipeline.train[3]`, and its file, line and column.
struct PipelineLocation {
  std::string key;
  Origin origin;
};

/// How a stored image becomes the model's input, in this order: crop, resize to the epoch's image
/// size, flip left to right, the steps, then type, normalisation and layout. Immutable once built,
/// and shared by all threads.
struct ImagePipeline {
  std::shared_ptr<const Crop> crop;
  double flip_probability = 0;
  NormalizeOptions normalize = {};
  ResizeFilter filter = ResizeFilter::area;
  std::vector<PipelineStep> steps = {};
  /// The type of the loader's pixels: u8, f32, f16 or bf16. Empty: the loader's caller chooses
  /// normalised float32 or u8.
  std::optional<ElementType> type = {};
  /// Whether pixels of the requested `type` are normalised.
  bool normalized = false;
  /// [C, H, W] instead of [H, W, C].
  bool channels_first = false;
  /// 3: RGB. 1: luma (data/image/luma.h), which is a JPEG's Y plane. The steps receive pixels with
  /// the luma in all three channels, and the result is the luma of their output.
  int channels = 3;
  /// Set if the recipe has the item `channels`, or `normalize` with numbers. If so, set_channels()
  /// keeps the recipe's values.
  std::optional<PipelineLocation> channels_location = {}, normalize_location = {};

  /// Returns the shape that an image of shape `resized` has after all steps.
  /// @param mask whether to apply only the steps that move pixels. @throws ConfigError naming the
  /// step.
  [[nodiscard]] PRECAST_API PixelShape output(const PixelShape& resized, bool mask = false) const;
};

/// FFCV's training images: random resized crop, flip with probability 0.5.
[[nodiscard]] PRECAST_API ImagePipeline standard_train_pipeline();
/// ffcv-imagenet's evaluation images: centre crop of ratio 224/256.
[[nodiscard]] PRECAST_API ImagePipeline standard_val_pipeline();

}  // namespace precast::data
