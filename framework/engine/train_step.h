#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/loss.h"
#include "framework/api/model.h"
#include "framework/api/optimizer.h"
#include "framework/api/step_strategy.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"
#include "framework/engine/precision.h"
#include "framework/engine/step_graph.h"
#include "framework/engine/step_parts.h"

namespace precast::engine {

/// One update of the parameters: forward, loss, backward with gradients averaged over the ranks (or
/// the passes of a method's StepStrategy instead), on_backward after each backward pass, unscale,
/// on_gradients, optimiser. The optimiser may do the last three in one call. A step never waits for
/// the device. A StepGraph may replay the passes, or the whole step. Not thread-safe.
class PRECAST_API TrainStep : private StepPasses {
 public:
  /// @param skip_nonfinite whether to discard a step with a gradient that is not finite, so that it
  /// changes neither parameters nor running statistics. In fp16, the gradient scaler protects the
  /// parameters in any case.
  /// @param graph created for the same model; null if nothing is to be recorded.
  TrainStep(const TrainPlan& plan, StepParts parts, at::Device device, bool skip_nonfinite,
            std::unique_ptr<StepGraph> graph = nullptr);

  /// Sets a function that is called at the end of each step with the step's loss. If the update was
  /// skipped because a gradient is not finite (`skip_nonfinite`, except in fp16), `loss` is NaN. A
  /// recording of the whole step contains this call, so `count` must launch the same work on the
  /// same memory each time, and change nothing on the host.
  void set_loss_callback(std::function<void(const at::Tensor& loss)> count);
  /// Runs one step. @param batch its size must be a multiple of the plan's micro_batches.
  /// @return this rank's mean loss: scalar float32 on the device, detached.
  /// @throws Error if a batch norm has only one value per channel, because there is one sample in a
  /// forward pass and the layer's input is 1 x 1 at this image size; Error if a StepStrategy breaks
  /// the rule of StepPasses::forward_backward() about `last`; the errors of
  /// GradSync::check_backward().
  at::Tensor run(Batch& batch, double lr);
  /// Runs the passes of a step without an update and without the other ranks, to test whether
  /// memory suffices and to let cuDNN choose its kernels. Afterwards there are no gradients, but
  /// running statistics have changed. @throws the errors of run()
  void rehearse(Batch& batch);
  /// Drops the recordings, so that other work can use their memory. Steps are recorded again when
  /// necessary.
  void drop_recordings() {
    if (graph_) graph_->drop_recordings();
  }
  /// Returns the number of discarded steps (`skip_nonfinite`) since the last call, the same on
  /// every rank. Waits for the device if `skip_nonfinite` is true. In fp16, only discarded steps in
  /// which the loss of a rank is not finite count: the others are those that the gradient scaler
  /// discards while it searches for its scale.
  [[nodiscard]] std::int64_t take_skipped_steps();
  /// Null unless the plan's precision is fp16.
  [[nodiscard]] GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  /// The number of steps of one image size up to and including the first replay; 0 if nothing is
  /// recorded.
  [[nodiscard]] std::int64_t steps_to_first_replay() const {
    return graph_ ? graph_->warm_ups() + 1 : 0;
  }
  /// Number of replays so far. If only passes are recorded, a StepStrategy may replay several per
  /// step.
  [[nodiscard]] std::int64_t replayed_passes() const { return graph_ ? graph_->replays() : 0; }

 private:
  at::Tensor forward_backward(Batch& batch, bool last) override;
  [[nodiscard]] at::Tensor forward(const Batch& batch) override;
  [[nodiscard]] Model& model() override { return parts_.model; }
  [[nodiscard]] const Loss& loss() const override { return parts_.loss; }

  /// Whether graph_ records work of this `scope` and should run this batch.
  [[nodiscard]] bool records(GraphScope scope, const Batch& batch) const;
  at::Tensor complete_step(Batch& batch, double lr);
  at::Tensor passes(const Batch& batch, bool sync);
  /// @throws Error naming the method whose StepStrategy did not call forward_backward() as
  /// required.
  /// @param found what it did instead, as a noun.
  [[noreturn]] void throw_wrong_passes(const std::string& found) const;
  at::Tensor loss_of(const Batch& batch);
  at::Tensor outputs_of(const Batch& batch);
  /// Updates the parameters from the averaged gradients. @return the result of the check for
  /// non-finite gradients; nothing if they were not checked
  std::optional<Optimizer::Scaled> update(double lr);
  /// Does the work of update() in one call of Optimizer::step_scaled(). @return false if the
  /// optimiser or a method does not support this
  [[nodiscard]] bool try_fused_update(double lr, std::optional<Optimizer::Scaled>& scaled);
  [[nodiscard]] std::optional<Optimizer::Scaled> unscale();
  /// @param found_inf whether the step was discarded, as in Optimizer::Scaled
  void count_skipped(const at::Tensor& loss, const at::Tensor& found_inf);
  void drop_gradients();

  const TrainPlan& plan_;
  StepParts parts_;
  at::Device device_;
  bool skip_nonfinite_;
  std::optional<GradScaler> scaler_;
  std::vector<at::Tensor> trainable_;
  /// The StepStrategy of the method that has one; null if no method has one.
  StepStrategy* strategy_ = nullptr;
  bool rehearses_ = false;
  /// Whether the pass with `last` = true has already run in the current step.
  bool had_last_pass_ = false;
  /// The learning rate, if the graph contains the optimiser; otherwise undefined. Steps that are
  /// not recorded read this tensor too, so that they give the same results as replayed steps.
  at::Tensor lr_;
  std::function<void(const at::Tensor& loss)> loss_callback_;
  /// The running statistics, and copies of their values before the step; empty unless
  /// skip_nonfinite.
  std::vector<at::Tensor> statistics_, statistics_before_;
  /// The value of take_skipped_steps(): scalar int64 on the device. Undefined unless
  /// skip_nonfinite.
  at::Tensor skipped_steps_;
  /// Null if nothing is recorded. Destroyed before the tensors that its recordings use.
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace precast::engine
