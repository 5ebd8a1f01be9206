#pragma once

#include "framework/api/model.h"
#include "framework/core/export.h"

namespace precast::models {

/// Adds every model of this folder: layers, resnet18/34/50/101/152, wide_resnet50_2,
/// resnext50_32x4d. A factory throws ConfigError for a class count below 1 and for unknown
/// `model.params`.
PRECAST_API void register_models(ModelRegistry& registry);

}  // namespace precast::models
