#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "framework/api/batch.h"
#include "framework/core/export.h"
#include "framework/engine/graph_choice.h"
#include "framework/engine/graph_recorder.h"

namespace precast::engine {

struct StepGraphOptions {
  /// How much of a step is recorded; only TrainStep reads this.
  GraphScope scope = GraphScope::passes;
  /// For each shape, the number of steps that run before a step is recorded. In these steps,
  /// libraries allocate their workspaces, cuDNN chooses its kernels and the model creates its
  /// constants. PyTorch's documentation of CUDA graphs recommends this number.
  int warm_ups = 3;
  /// The maximum number of recordings at the same time, one for each shape. If there are more
  /// shapes, the least recently used recording is dropped.
  std::size_t kept = 1;
  /// Whether other ranks record and replay the same work. If so, this rank cannot continue without
  /// a recording.
  bool several_ranks = false;
};

/// Records and replays the work of training steps. The caller decides whether this is a forward and
/// a backward pass or the whole step (GraphScope).
///
/// The first steps with a shape run without a recording; then one step is recorded, and replayed
/// from then on. Batches of a different shape or type get their own recording. If the set of
/// parameters that require gradients changes (layer freezing), all recordings are dropped. If a
/// step cannot be recorded, the run ends. In two cases, this step and all later ones instead run
/// without a graph, with a warning: if the mode is `automatic`, or if, with one rank, memory runs
/// out although there is no other recording.
///
/// The memory that recordings use is reserved for recordings. Therefore, all recordings are dropped
/// before a warm-up step. The step then needs no more memory than without graphs, and the rehearsal
/// has tested that this fits. A shape whose recording was dropped is recorded again at its next
/// step, without warming up, as long as it is one of the StepGraphOptions::kept most recently used
/// shapes. If memory runs out while a shape is recorded, the other recordings are dropped, and from
/// then on only one recording is kept.
///
/// The work must do the same each time: if a model makes a decision on the host, such as which
/// layers to drop, every replay repeats the recorded decision. Not thread-safe.
class PRECAST_API StepGraph {
 public:
  /// Runs the forward and backward passes, which replace the parameters' gradients with new
  /// tensors, and possibly further work on the device.
  /// @return the loss: scalar, detached.
  using Work = std::function<at::Tensor(const Batch&)>;

  static constexpr int kWarmUps = StepGraphOptions{}.warm_ups;

  /// @param mode not off.
  /// @param parameters all parameters of the model, including those that do not require gradients
  /// at the moment.
  StepGraph(GraphMode mode, std::unique_ptr<GraphRecorder> recorder,
            std::vector<at::Tensor> parameters, StepGraphOptions options = {});

  /// Runs `work`, or replays a recording of it. @return the loss, in a tensor that later replays do
  /// not overwrite
  /// @throws DeviceError if the work cannot be recorded for a reason other than lack of memory, and
  /// the mode is not `automatic`; libtorch's exception if memory runs out outside a recording or,
  /// with `several_ranks`, during one.
  [[nodiscard]] at::Tensor run(const Batch& batch, const Work& work);
  /// Drops the recordings, so that other work can use their memory. Does nothing while work is
  /// being recorded. If there were recordings, the parameters have no gradients afterwards.
  /// @return whether there were recordings
  bool drop_recordings();
  [[nodiscard]] GraphMode mode() const { return mode_; }
  [[nodiscard]] GraphScope scope() const { return options_.scope; }
  /// For each shape, the number of steps that run before a step is recorded. The recorded step is
  /// also replayed at once.
  [[nodiscard]] int warm_ups() const { return options_.warm_ups; }
  /// Number of replays so far.
  [[nodiscard]] std::int64_t replays() const { return replays_; }

 private:
  /// The state for batches of one shape.
  struct Shape {
    /// Sizes, strides and types of the batch, as tensors without memory.
    Batch layout;
    int warm_ups = 0;
    /// The batch whose tensors the recorded work reads as its inputs; its sample ids are empty. It
    /// has no fields until copy_inputs() creates them.
    Batch batch{};
    /// The output of the recorded work.
    at::Tensor loss{};
    std::vector<at::Tensor> gradients{};
    /// Null before the recording. Destroyed before the tensors that it uses.
    std::unique_ptr<GraphRecorder::Recording> recording{};
  };

  [[nodiscard]] std::vector<bool> trained_now() const;
  [[nodiscard]] Shape& shape_of(const Batch& batch);
  static void copy_inputs(const Batch& batch, Shape& shape);
  [[nodiscard]] at::Tensor warm_up(Shape& shape, const Work& work);
  [[nodiscard]] bool record(Shape& shape, const Work& work);
  /// Drops all recordings. From now on, keeps only one, for the most recently used shape.
  /// @return whether there were recordings
  bool keep_one();
  [[nodiscard]] at::Tensor replay(Shape& shape);
  void give_up(const std::exception& failure, bool out_of_memory);
  void drop_gradients();

  GraphMode mode_;
  std::vector<at::Tensor> parameters_;
  StepGraphOptions options_;
  std::int64_t replays_ = 0;
  /// For each parameter, whether it required a gradient when the entries of `shapes_` were created.
  std::vector<bool> trained_;
  /// Null after give_up().
  std::unique_ptr<GraphRecorder> recorder_;
  /// Whether work is being recorded.
  bool records_ = false;
  /// The most recently used shape first.
  std::list<Shape> shapes_;
};

}  // namespace precast::engine
