#pragma once

#include <ATen/core/Tensor.h>

#include "framework/api/batch.h"
#include "framework/api/loss.h"
#include "framework/api/model.h"

namespace precast {

/// The forward and backward passes of one training step, as the engine runs them with its
/// precision, micro-batches and ranks. They never wait for the device. Not thread-safe.
class StepPasses {
 public:
  virtual ~StepPasses() = default;
  /// Runs a forward and a backward pass. Afterwards the parameters have the gradients of `batch`;
  /// in fp16, these are multiplied by the gradient scaler's factor.
  /// @param batch its number of samples is a multiple of the plan's micro_batches.
  /// @param last whether the update uses these gradients; only then are they averaged over the
  /// ranks. Must be true in the last call of a step and in no other; otherwise the step throws
  /// Error.
  /// @return this rank's mean loss: scalar float32 on the device, detached.
  virtual at::Tensor forward_backward(Batch& batch, bool last) = 0;
  /// Returns the outputs of the model in training mode, without computing gradients. Running
  /// statistics change as in training.
  [[nodiscard]] virtual at::Tensor forward(const Batch& batch) = 0;
  [[nodiscard]] virtual Model& model() = 0;
  [[nodiscard]] virtual const Loss& loss() const = 0;
};

/// Replaces the usual forward and backward pass of a step. For example, SAM runs two of each, and
/// selective backprop uses only a part of the batch. The engine still does everything before these
/// passes (on_batch) and after them (unscaling, on_gradients, the optimiser).
class StepStrategy {
 public:
  virtual ~StepStrategy() = default;
  /// @return the step's loss, as forward_backward returns it.
  [[nodiscard]] virtual at::Tensor run(Batch& batch, StepPasses& passes) = 0;
  /// Runs the passes of the kind of step that needs the most memory. Called before the run starts;
  /// must leave the weights unchanged. By default, runs one forward and one backward pass.
  virtual void rehearse(Batch& batch, StepPasses& passes) {
    static_cast<void>(passes.forward_backward(batch, /*last=*/true));
  }
};

}  // namespace precast
