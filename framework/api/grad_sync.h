#pragma once

namespace precast {

/// Makes the ranks train one model. The trainer calls, for each step,
///   begin_backward(last) and backward() for each micro-batch, finish_backward(), optimiser,
///   finish_step().
/// Not thread-safe.
class GradSync {
 public:
  virtual ~GradSync() = default;
  /// Call before backward(). @param last whether this backward pass completes the step's gradients.
  /// Only during the last one are they sent, overlapped with the pass itself.
  virtual void begin_backward(bool last) = 0;
  /// When it returns, gradients are means over the ranks, on every rank that updates the parameter.
  virtual void finish_backward() = 0;
  /// Call after the update. When it returns, all ranks have the same parameters.
  virtual void finish_step() = 0;
  /// Whether every rank sees the averaged gradients, or only the one that updates the parameter.
  [[nodiscard]] virtual bool gradients_everywhere() const { return true; }
};

}  // namespace precast
