#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/core/export.h"

namespace precast {
class Model;
}  // namespace precast

namespace precast::models {

/// How the batch norms (detail::BatchNorm2d) of a model with ModelSpec::fused_kernels are computed
/// in training on a GPU, and which other layers use fused kernels.
struct FusedLayerCounts {
  /// Number of norms computed by fused kernels.
  std::int64_t fused = 0;
  /// Numbers of the other norms, grouped by reason: {"ghost_batch_norm", 4}.
  std::map<std::string, std::int64_t> reference;
  /// Number of convolutions whose input is blurred by fused kernels (BlurPool), of fused max pools,
  /// and of convolutions of RGB images whose input is padded by a fused kernel.
  std::int64_t blurs = 0;
  std::int64_t max_pools = 0;
  std::int64_t stems = 0;
};

/// A model that can count its fused layers, as models from as_model() can.
class PRECAST_API HasFusedLayerCounts {
 public:
  virtual ~HasFusedLayerCounts();
  [[nodiscard]] virtual FusedLayerCounts fused_layer_counts() const = 0;
};

/// The numbers for `model`; all are 0 if it is not a HasFusedLayerCounts.
[[nodiscard]] PRECAST_API FusedLayerCounts fused_layer_counts(const Model& model);

}  // namespace precast::models
