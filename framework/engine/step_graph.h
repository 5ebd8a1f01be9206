#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "framework/api/batch.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"
#include "framework/engine/graph_recorder.h"

namespace precast::engine {

/// Whether the forward and backward passes of a step are recorded once and then replayed as one
/// launch (a CUDA graph).
enum class GraphMode {
  off,
  /// For small batches in fp16 or bf16. A step that cannot be recorded runs without a graph.
  automatic,
  /// For every full batch. A step that cannot be recorded is an error.
  on,
};

/// Whether a graph may record the step: on one GPU with one rank only (several ranks exchange
/// gradients during the backward pass).
[[nodiscard]] PRECAST_API bool can_capture(GraphMode mode, const TrainPlan& plan, at::Device device,
                                           int world);
/// Whether a replay saves time. It does if the device finishes a kernel before the host has
/// launched the next one. According to measurements by others, it saves much time with batches far
/// below 96 images of 160 px, and none with larger ones (spikformer's figures for 8 and 96 images;
/// torchbench pull request 706).
[[nodiscard]] PRECAST_API bool worth_capturing(GraphMode mode, std::int64_t samples,
                                               std::int64_t size_px);

/// The forward and backward passes of training steps, recorded. The optimiser is not recorded: it
/// has few kernel launches, and they take the learning rate as a plain number, which a recording
/// would freeze.
///
/// The first steps with a shape run without a recording; then one step is recorded, and replayed
/// from then on. There is one recording at a time. A batch of a different shape or type, or a
/// different set of parameters that require gradients (layer freezing), starts over. If a step
/// cannot be recorded, this step and all later ones run as without a graph, with a warning; or,
/// with GraphMode::on, the run ends.
///
/// The passes must do the same each time: if a model makes a decision on the host, such as which
/// layers to drop, every replay repeats the recorded decision. Not thread-safe.
class PRECAST_API StepGraph {
 public:
  /// Runs the forward and backward passes, and replaces the parameters' gradients with new ones.
  /// @return the loss: scalar, detached.
  using Passes = std::function<at::Tensor(const Batch&)>;

  /// Steps before the recording, in which libraries allocate their workspaces, cuDNN chooses its
  /// kernels and the model creates its constants. PyTorch's documentation of CUDA graphs asks for
  /// this number.
  static constexpr int kWarmUps = 3;

  /// @param mode automatic or on.
  /// @param parameters all of the model, including those that do not require gradients now.
  StepGraph(GraphMode mode, std::unique_ptr<GraphRecorder> recorder,
            std::vector<at::Tensor> parameters);

  /// Runs `passes`, or replays the recording of them. @return as `passes`; owned by the caller
  /// @throws DeviceError in mode `on` if the passes cannot be recorded; if memory runs out during
  /// the recording, the exception of libtorch.
  [[nodiscard]] at::Tensor run(const Batch& batch, const Passes& passes);
  [[nodiscard]] GraphMode mode() const { return mode_; }
  /// Number of runs so far that were replays.
  [[nodiscard]] std::int64_t replays() const { return replays_; }

 private:
  [[nodiscard]] bool fits(const Batch& batch) const;
  [[nodiscard]] std::vector<bool> trained_now() const;
  void start_over(const Batch& batch);
  [[nodiscard]] at::Tensor warm_up(const Passes& passes);
  [[nodiscard]] bool record(const Passes& passes);
  [[nodiscard]] at::Tensor replay();
  void give_up(const std::exception& failure);
  void drop_gradients();

  GraphMode mode_;
  std::vector<at::Tensor> parameters_;
  int warm_ups_ = 0;
  std::int64_t replays_ = 0;
  /// Which parameters required gradients when the warm-ups began.
  std::vector<bool> trained_;
  /// The private tensors that the recorded work reads, without sample ids.
  Batch batch_;
  /// The output of the recorded work; undefined until something is recorded.
  at::Tensor loss_;
  std::vector<at::Tensor> gradients_;
  /// Null once the recording has failed. Destroyed before the tensors that its recording uses.
  std::unique_ptr<GraphRecorder> recorder_;
};

/// @return null if nothing is to be recorded: can_capture() is false, or the mode is `automatic` in
/// a build without CUDA.
/// @throws DeviceError for `on` in a build without CUDA.
[[nodiscard]] PRECAST_API std::unique_ptr<StepGraph> make_step_graph(GraphMode mode,
                                                                     const TrainPlan& plan,
                                                                     at::Device device, int world,
                                                                     const Model& model);

}  // namespace precast::engine
