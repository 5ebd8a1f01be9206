#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/stateful.h"
#include "framework/core/config/part.h"
#include "framework/core/error.h"

namespace precast {

/// Updates parameters from their gradients. Owns its state (velocities and moments, in tensors
/// named after the parameter, such as "conv1.weight.momentum") and borrows the parameters' memory.
class Optimizer : public Stateful {
 public:
  /// The result of the check for non-finite gradients. Gradients are checked in fp16, and with
  /// training.on_nonfinite: skip.
  struct Scaled {
    /// Scalar float32: 1 if any gradient is Inf or NaN (the step must then change nothing).
    at::Tensor found_inf;
  };

  /// One update with the learning rate `lr`. Gradients are already unscaled. @param scaled the
  /// result of the check; nothing if gradients were not checked.
  virtual void step(double lr, const std::optional<Scaled>& scaled) = 0;
  /// Whether step_with() is implemented. If so, each call of step_with() launches the same work on
  /// the same memory, as long as the same parameters have gradients, so that a CUDA graph can
  /// record it.
  [[nodiscard]] virtual bool takes_lr_tensor() const { return false; }
  /// The same update as step(), but the host never reads the learning rate.
  /// @param lr scalar float32 on the parameters' device.
  virtual void step_with(const at::Tensor& /*lr*/, const std::optional<Scaled>& /*scaled*/) {
    require(false, "step_with() is called only if takes_lr_tensor()");
  }

  /// An update from gradients that are still multiplied by a scale and not clipped yet.
  struct ScaledStep {
    /// The parameters that have gradients, in the model's order.
    const std::vector<at::Tensor>& parameters;
    double lr = 0;
    /// Scalar float32 that replaces `lr`, as in step_with(); may be undefined. This and the
    /// following tensors are on the parameters' device.
    at::Tensor lr_tensor{};
    /// Scalar float32 by which the gradients are divided; if undefined, they are not divided.
    at::Tensor scale{};
    /// After the division, gradients are clipped so that the norm over all of them is at most
    /// max_norm, as by torch.nn.utils.clip_grad_norm_; infinity means no clipping.
    double max_norm = std::numeric_limits<double>::infinity();
    /// Scalar float32 that the optimiser writes: 1 if any gradient is Inf or NaN, in which case the
    /// step changes nothing else; otherwise 0. If undefined, gradients are not checked.
    at::Tensor found_inf{};
  };
  /// Unscales, checks, clips and updates in one call, if the optimiser can do this faster than with
  /// separate passes over the gradients. The result is the same except for rounding. Never waits
  /// for the device; a CUDA graph can record the call if takes_lr_tensor(). The gradients
  /// themselves are not changed, so they stay scaled.
  /// @return false, without having done anything, if there is no faster way for these parameters.
  [[nodiscard]] virtual bool step_scaled(const ScaledStep& /*step*/) { return false; }
};

/// The inputs from which every optimiser is created.
struct OptimizerInputs {
  /// The parameters that this rank updates, in the model's order. The list itself is used only
  /// during construction.
  const std::vector<NamedTensor>& parameters;
  /// The schedule's highest learning rate.
  double peak_lr = 0;
};

using OptimizerRegistry = PartRegistry<Optimizer, const OptimizerInputs&>;

}  // namespace precast
