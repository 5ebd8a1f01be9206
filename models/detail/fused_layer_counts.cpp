#include "models/detail/fused_layer_counts.h"

#include "framework/api/model.h"

namespace precast::models {

HasFusedLayerCounts::~HasFusedLayerCounts() = default;

FusedLayerCounts fused_layer_counts(const Model& model) {
  const auto* known = dynamic_cast<const HasFusedLayerCounts*>(&model);
  return known == nullptr ? FusedLayerCounts{} : known->fused_layer_counts();
}

}  // namespace precast::models
