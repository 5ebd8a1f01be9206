#pragma once

#include <string>
#include <vector>

#include "data/transforms/crop.h"
#include "data/transforms/transform.h"
#include "framework/core/export.h"

namespace precast::data {

/// The parts that a recipe's pipeline may name.
struct TransformRegistries {
  CropRegistry crops{"crop"};
  TransformRegistry transforms{"transform"};
  LabelTransformRegistry labels{"label transform"};
};

/// Fills all three registries with the built-in parts.
PRECAST_API void register_transforms(TransformRegistries& registries);

}  // namespace precast::data
