#include "models/detail/blurred_layers.h"

#include "framework/api/model.h"

namespace precast::models {

HasBlurredLayers::~HasBlurredLayers() = default;

BlurredLayers blurred_layers(const Model& model) {
  const auto* known = dynamic_cast<const HasBlurredLayers*>(&model);
  return known == nullptr ? BlurredLayers{} : known->blurred_layers();
}

}  // namespace precast::models
