#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
/// on_gradients, optimiser; the last three at once if the optimiser can. It never waits for the
/// device. A StepGraph may replay the passes, or everything. Not thread-safe.
class PRECAST_API TrainStep : private StepPasses {
 public:
  /// @param skip_nonfinite whether a step whose gradients are not all finite is discarded, so that
  /// it changes neither parameters nor running statistics; in fp16 the gradient scaler protects the
  /// parameters in any case.
  /// @param graph made for the same model; null: every pass is launched kernel by kernel.
  TrainStep(const TrainPlan& plan, StepParts parts, at::Device device, bool skip_nonfinite,
            std::unique_ptr<StepGraph> graph = nullptr);

  /// Gives the loss of each step to `count`, at the end of the step. A recording of the whole step
  /// contains this call, so it must launch the same work on the same memory each time, and change
  /// nothing on the host.
  void count_losses(std::function<void(const at::Tensor& loss)> count);
  /// @param batch its size is a multiple of the plan's micro_batches.
  /// @return this rank's mean loss: scalar float32 on the device, detached.
  at::Tensor run(Batch& batch, double lr);
  /// Runs the passes of a step without an update and without the other ranks, to find out whether
  /// memory suffices and to tune kernels. Afterwards there are no gradients, but running statistics
  /// have changed.
  void rehearse(Batch& batch);
  /// Drops the recordings of a graph, so that other work can use their memory. They are made again
  /// when they are needed.
  void drop_recordings() {
    if (graph_) graph_->drop_recordings();
  }
  /// Null unless the plan's precision is fp16.
  [[nodiscard]] GradScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
  /// Steps with one image size after which at least one was replayed; 0 if nothing is recorded.
  [[nodiscard]] std::int64_t steps_to_first_replay() const {
    return graph_ ? graph_->warm_ups() + 1 : 0;
  }
  /// Replays so far; a step may have several if only its passes are recorded (StepStrategy).
  [[nodiscard]] std::int64_t replayed_passes() const { return graph_ ? graph_->replays() : 0; }

 private:
  at::Tensor forward_backward(Batch& batch, bool last) override;
  [[nodiscard]] at::Tensor forward(const Batch& batch) override;
  [[nodiscard]] Model& model() override { return parts_.model; }
  [[nodiscard]] const Loss& loss() const override { return parts_.loss; }

  /// Whether the graph should run a batch, as the whole step or as its passes.
  [[nodiscard]] bool records(GraphScope scope, const Batch& batch) const;
  at::Tensor complete_step(Batch& batch, double lr);
  at::Tensor passes(const Batch& batch, bool sync);
  at::Tensor loss_of(const Batch& batch);
  /// From the averaged gradients to the new parameters. @return whether they were finite, if that
  /// was checked
  std::optional<Optimizer::Scaled> update(double lr);
  /// update() by Optimizer::step_scaled(). @return false if the optimiser or a method cannot
  [[nodiscard]] bool update_at_once(double lr, std::optional<Optimizer::Scaled>& scaled);
  [[nodiscard]] std::optional<Optimizer::Scaled> unscale();
  void drop_gradients();

  const TrainPlan& plan_;
  StepParts parts_;
  at::Device device_;
  bool skip_nonfinite_;
  std::optional<GradScaler> scaler_;
  std::vector<at::Tensor> trainable_;
  /// The step strategy, which at most one method has; else null.
  StepStrategy* strategy_ = nullptr;
  bool rehearses_ = false;
  /// The learning rate if the graph contains the optimiser; else undefined. Steps that are not
  /// recorded then also read it, so that they compute the same.
  at::Tensor lr_;
  std::function<void(const at::Tensor& loss)> count_;
  /// Batch statistics, and their values before the step; empty unless skip_nonfinite.
  std::vector<at::Tensor> statistics_, statistics_before_;
  /// Null if nothing is recorded. Destroyed before the tensors that its recordings use.
  std::unique_ptr<StepGraph> graph_;
};

}  // namespace precast::engine
