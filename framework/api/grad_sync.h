#pragma once

#include <string>

namespace precast {

/// Averages gradients over the ranks, so that all ranks have the same model. For each step, the
/// trainer calls
///   begin_backward(last) and backward() for each micro-batch, then check_backward(),
///   finish_backward(), the optimiser, and finish_step().
/// If a StepStrategy runs several passes, begin_backward() and check_backward() are called only in
/// the last one. Not thread-safe.
class GradSync {
 public:
  virtual ~GradSync() = default;
  /// Call before backward(). @param last whether this backward pass completes the step's gradients.
  /// Gradients are sent during this last pass or after it, never earlier.
  virtual void begin_backward(bool last) = 0;
  /// Call after the step's last backward(), before gradients are changed or dropped. @throws Error
  /// listing the parameters for which no gradient was computed, if this implementation needs all
  /// gradients
  virtual void check_backward() {}
  /// When this function returns, each gradient is the mean over the ranks, at least on the ranks
  /// that update its parameter. The same parameters must have gradients on all ranks.
  virtual void finish_backward() = 0;
  /// Call after the update. When this function returns, all ranks have the same parameters.
  virtual void finish_step() = 0;
  /// Whether every rank has all averaged gradients. If false, a rank has averaged gradients only
  /// for the parameters that it updates.
  [[nodiscard]] virtual bool gradients_everywhere() const { return true; }
  /// The reason why a CUDA graph of the whole step cannot contain these calls, as a clause. Empty
  /// if it can; the calls must then launch the same work in each step and change nothing on the
  /// host.
  [[nodiscard]] virtual std::string graph_obstacle() const {
    return "the exchange of gradients does not declare that it can be recorded";
  }
};

}  // namespace precast
