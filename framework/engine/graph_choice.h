#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/method.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"

namespace precast::engine {

class StepGraph;
struct StepParts;

/// The value of training.cuda_graphs, which determines the work that is recorded once as a CUDA
/// graph and then replayed as one launch.
enum class GraphMode {
  off,
  /// The forward and backward passes of small batches in fp16 or bf16. If a step cannot be
  /// recorded, it and all later ones run without a graph.
  automatic,
  /// The forward and backward passes of every full batch. A step that cannot be recorded is an
  /// error, unless the reason is lack of memory.
  on,
  /// The whole step of every full batch, if choose_graph() finds no obstacle; otherwise like `on`.
  step,
};

/// How much of a step one recording contains.
enum class GraphScope {
  none,
  /// The forward and backward passes.
  passes,
  /// Everything that the step does on the device until its loss is added to the running sum.
  step,
};

struct GraphChoice {
  GraphScope scope = GraphScope::none;
  /// With GraphMode::step, the reasons why a recording does not contain the whole step, one clause
  /// each, such as "sam replaces the forward and backward passes". Empty if a recording contains
  /// the whole step.
  std::vector<std::string> obstacles;
};

/// The facts that the choice depends on; the last three matter only for GraphMode::step.
struct GraphFacts {
  GraphMode mode = GraphMode::off;
  Precision precision = Precision::fp32;
  at::Device device = at::kCPU;
  int world = 1;
  /// Optimizer::takes_lr_tensor().
  bool takes_lr_tensor = false;
  const std::vector<NamedMethod>& methods;
  /// GradSync::graph_obstacle() of the run.
  std::string sync_obstacle{};
};

/// Decides what is recorded. Passes are recorded only on a GPU and with one rank, because several
/// ranks may exchange gradients during the backward pass. Whole steps are also recorded with
/// several ranks, if their exchange of gradients can be recorded.
[[nodiscard]] PRECAST_API GraphChoice choose_graph(const GraphFacts& facts);

/// The choice in words: "the whole step", "the forward and backward passes, not the whole step:
/// ...", "nothing: ...".
[[nodiscard]] PRECAST_API std::string graph_text(const GraphChoice& choice);

/// Whether to record steps with batches of this size: never with `off`, always with `on` and
/// `step`; with `automatic`, if a batch has fewer pixels than 96 images of 160 px, because replays
/// then probably save time. They do if the device finishes a kernel before the host has launched
/// the next one. In published measurements, replays save much time with batches far below that
/// size, and none with larger batches (spikformer, with 8 and 96 images; torchbench pull request
/// 706).
[[nodiscard]] PRECAST_API bool worth_recording(GraphMode mode, std::int64_t samples,
                                               std::int64_t size_px);

/// Creates the StepGraph of a run. If the mode is `step` and a recording cannot contain the whole
/// step, rank zero prints why.
/// @return null if nothing will be recorded: if choose_graph() returns GraphScope::none, or if the
/// mode is `automatic` in a build without CUDA.
/// @throws DeviceError for `on` and `step` with a GPU in a build without CUDA.
[[nodiscard]] PRECAST_API std::unique_ptr<StepGraph> make_step_graph(GraphMode mode,
                                                                     const TrainPlan& plan,
                                                                     at::Device device,
                                                                     const StepParts& parts);

}  // namespace precast::engine
