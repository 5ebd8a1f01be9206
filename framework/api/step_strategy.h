#pragma once

#include <ATen/core/Tensor.h>

#include "framework/api/batch.h"
#include "framework/api/loss.h"
#include "framework/api/model.h"

namespace precast {

/// The passes of one training step as the engine does them, with its precision, micro-batches and
/// ranks. Nothing in them waits for the device. Not thread-safe.
class StepPasses {
 public:
  virtual ~StepPasses() = default;
  /// Forward and backward: drops old gradients and leaves those of `batch` in the parameters, in
  /// fp16 multiplied by the gradient scaler's factor.
  /// @param batch its number of samples is a multiple of the plan's micro_batches.
  /// @param last whether these are the gradients of the update; only these are averaged over the
  /// ranks. Set in exactly one call per step, the last one.
  /// @return this rank's mean loss: scalar float32 on the device, detached.
  virtual at::Tensor forward_backward(Batch& batch, bool last) = 0;
  /// Returns outputs without gradients, of the model in training mode: batch statistics do change.
  [[nodiscard]] virtual at::Tensor forward(const Batch& batch) = 0;
  [[nodiscard]] virtual Model& model() = 0;
  [[nodiscard]] virtual const Loss& loss() const = 0;
};

/// What a method does instead of one forward and backward pass per step: SAM does two, selective
/// backprop uses a part of the batch only. What comes before (on_batch) and after (unscaling,
/// on_gradients, the optimiser) remains the engine's work.
class StepStrategy {
 public:
  virtual ~StepStrategy() = default;
  /// @return the step's loss, as forward_backward returns it.
  [[nodiscard]] virtual at::Tensor run(Batch& batch, StepPasses& passes) = 0;
  /// Runs the passes of the step that needs the most memory. Called before the run starts; leaves
  /// the weights unchanged. By default one forward and one backward pass.
  virtual void rehearse(Batch& batch, StepPasses& passes) {
    static_cast<void>(passes.forward_backward(batch, /*last=*/true));
  }
};

}  // namespace precast
