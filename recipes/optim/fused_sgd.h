#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "framework/api/optimizer.h"
#include "framework/core/export.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {

/// The update of MomentumRule::step() for all groups in one launch, by recipes/cuda/sgd.h. Results
/// differ from libtorch's by rounding. Not thread-safe.
class FusedSgd {
 public:
  virtual ~FusedSgd() = default;
  /// Whether it can update these: float32 parameters on one GPU, with gradients in float32, float16
  /// or bfloat16.
  [[nodiscard]] virtual bool can_step(const std::vector<ParameterGroups::Group>& groups) const = 0;
  /// Does not wait for the device. A CUDA graph must not record it, because it may copy a table
  /// from host memory. @pre can_step(groups)
  virtual void step(const std::vector<ParameterGroups::Group>& groups, double lr,
                    const std::optional<Optimizer::Scaled>& scaled) = 0;
};

/// nullptr in builds without CUDA.
[[nodiscard]] PRECAST_API std::unique_ptr<FusedSgd> make_fused_sgd(double momentum, bool nesterov);

}  // namespace precast::recipes
