#pragma once

#include <vector>

#include "framework/api/optimizer.h"
#include "recipes/cuda/sgd.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {

/// Computes the update of MomentumRule::step() with recipes/cuda/sgd.h: for all groups, in one
/// launch per kSgdMostTensors tensors. Can also unscale, check and clip the gradients. Results
/// differ from libtorch's by rounding. Does not wait for the device and copies nothing to it, so a
/// CUDA graph can record it. Const and thread-safe.
class FusedSgd {
 public:
  using Groups = std::vector<ParameterGroups::Group>;

  FusedSgd(double momentum, bool nesterov)
      : momentum_(static_cast<float>(momentum)), nesterov_(nesterov) {}

  /// Whether the kernels can update these parameters: float32 parameters on one device with kernels
  /// (a GPU), with gradients in float32, float16 or bfloat16.
  [[nodiscard]] static bool can_step(const Groups& groups);
  /// Updates the groups' parameters.
  /// @param lr a number, or a tensor as in Optimizer::step_with(). @{
  /// @pre can_step(groups)
  void step(const Groups& groups, double lr, const std::optional<Optimizer::Scaled>& scaled) const;
  void step(const Groups& groups, const at::Tensor& lr,
            const std::optional<Optimizer::Scaled>& scaled) const;
  /// @}
  /// Like Optimizer::step_scaled(). Checking or clipping takes two more launches for up to
  /// kSgdMostTensors tensors.
  /// @pre can_step(groups), and the groups contain exactly step.parameters
  void step(const Groups& groups, const Optimizer::ScaledStep& step) const;

 private:
  void launch(const Groups& groups, SgdTensors tensors, SgdStep step) const;

  float momentum_;
  bool nesterov_;
};

}  // namespace precast::recipes
