#include "data/transforms/image_pipeline.h"

#include <fmt/format.h>

#include "data/transforms/center_crop.h"
#include "data/transforms/random_resized_crop.h"
#include "framework/core/error.h"

namespace precast::data {

PixelShape ImagePipeline::output(const PixelShape& resized, bool mask) const {
  PixelShape shape = resized;
  for (const PipelineStep& step : steps) {
    if (mask && !step.transform->moves_pixels()) continue;
    try {
      shape = step.transform->output(shape);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: {}.{}", step.origin.text(), step.key, error.what()));
    }
  }
  if (!mask) shape.channels = channels;
  return shape;
}

ImagePipeline standard_train_pipeline() {
  return {.crop = std::make_shared<RandomResizedCrop>(), .flip_probability = 0.5, .normalize = {}};
}

ImagePipeline standard_val_pipeline() {
  return {.crop = std::make_shared<CenterCrop>(), .flip_probability = 0, .normalize = {}};
}

}  // namespace precast::data
