#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "framework/api/train_plan.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Whether the forward and backward passes of a step are recorded once and then replayed as one
/// launch (a CUDA graph).
enum class GraphMode {
  off,
  /// For small batches in fp16 or bf16.
  automatic,
  /// For every full batch.
  on,
};

/// What a graph may record: one GPU, one rank (gradients of several travel while backward runs).
[[nodiscard]] PRECAST_API bool can_capture(GraphMode mode, const TrainPlan& plan, at::Device device,
                                           int world);
/// Whether a replay saves time: where the device is done with a kernel before the host has launched
/// the next. Measured elsewhere: much below a batch of about 96 images of 160 px, nothing above
/// (spikformer's figures for 8 and 96 images; torchbench pull request 706).
[[nodiscard]] PRECAST_API bool worth_capturing(GraphMode mode, std::int64_t samples,
                                               std::int64_t size_px);

/// The recorded forward and backward passes of training steps. The optimiser is not part of it: its
/// few launches take the rate as a plain number and work for every optimiser and method.
///
/// The first steps of an image size run as they are, on the stream that records later; then one is
/// recorded, and from there on replayed on the current stream. One recording is kept: image sizes
/// change between epochs. What the passes do must be the same each time: a model that decides on
/// the host (which layers to drop, say) would repeat its first decision for ever. One thread.
class StepGraph {
 public:
  /// Forward and backward passes: drops old gradients, leaves new ones in the parameters.
  /// @return the loss: scalar, detached.
  using Passes = std::function<at::Tensor(const at::Tensor& images, const at::Tensor& labels)>;

  virtual ~StepGraph() = default;
  /// Does what `passes` would do. @return as `passes`; the caller's own
  [[nodiscard]] virtual at::Tensor run(const at::Tensor& images, const at::Tensor& labels,
                                       const Passes& passes) = 0;
};

/// @param parameters those whose gradients the passes make.
/// @throws DeviceError in a build without CUDA.
[[nodiscard]] std::unique_ptr<StepGraph> make_step_graph(at::Device device,
                                                         std::vector<at::Tensor> parameters);

}  // namespace precast::engine
