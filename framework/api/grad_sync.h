#pragma once

#include <string>

namespace precast {

/// Keeps the model the same on all ranks. For each step, the trainer calls
///   begin_backward(last) and backward() for each micro-batch, then finish_backward(), the
///   optimiser, and finish_step().
/// Not thread-safe.
class GradSync {
 public:
  virtual ~GradSync() = default;
  /// Call before backward(). @param last whether this backward pass completes the step's gradients.
  /// Gradients are sent only during this last pass, while it is still running.
  virtual void begin_backward(bool last) = 0;
  /// When it returns, each gradient is the mean over the ranks, at least on the ranks that update
  /// its parameter.
  virtual void finish_backward() = 0;
  /// Call after the update. When it returns, all ranks have the same parameters.
  virtual void finish_step() = 0;
  /// Whether every rank has the averaged gradients, or only the rank that updates the parameter.
  [[nodiscard]] virtual bool gradients_everywhere() const { return true; }
  /// Why a CUDA graph of the whole step cannot contain these calls, as a clause; empty: it can. The
  /// calls must then launch the same work in each step and change nothing on the host.
  [[nodiscard]] virtual std::string unrecordable_because() const {
    return "the gradients' exchange does not say that it can be recorded";
  }
};

}  // namespace precast
