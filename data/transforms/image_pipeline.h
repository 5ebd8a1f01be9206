#pragma once

#include <memory>
#include <string_view>

#include "data/transforms/crop.h"
#include "data/transforms/normalize.h"
#include "framework/core/config/node.h"
#include "framework/core/export.h"

namespace precast::data {

/// What happens to the images of a dataset on their way to the model, in this order: crop, resize
/// to the epoch's image size, flip left to right, normalise. Read from a recipe's list, as in
///     train: [random_resized_crop: {scale: [0.08, 1]}, horizontal_flip: {probability: 0.5},
///     normalize]
struct ImagePipeline {
  std::shared_ptr<const Crop> crop;
  double flip_probability = 0;
  NormalizeOptions normalize;
};

/// What a recipe may name as a crop.
PRECAST_API void register_crops(CropRegistry& registry);

/// Reads a `pipeline.train` or `pipeline.val` list; mistakes go to `diagnostics`, each with its
/// place.
/// @param key the list's name for messages: "pipeline.train".
/// @param standard what an empty list or no list means.
[[nodiscard]] PRECAST_API ImagePipeline parse_image_pipeline(const ConfigNode& list,
                                                             std::string_view key,
                                                             const CropRegistry& crops,
                                                             ImagePipeline standard,
                                                             Diagnostics& diagnostics);

/// FFCV's training images: random resized crop, flip with probability 0.5.
[[nodiscard]] PRECAST_API ImagePipeline standard_train_pipeline();
/// ffcv-imagenet's evaluation images: centre crop of ratio 224/256.
[[nodiscard]] PRECAST_API ImagePipeline standard_val_pipeline();

}  // namespace precast::data
