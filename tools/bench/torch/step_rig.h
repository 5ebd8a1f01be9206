#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/engine/train_step.h"
#include "tools/app/assembly.h"
#include "tools/app/rank_session.h"
#include "tools/app/recipe.h"
#include "tools/bench/torch/batch_stream.h"

namespace precast::tools {

/// The training step of a recipe, built of the same parts as `precast train` builds it, without
/// epochs, evaluation and run folder. The learning rate stays the same and small, so that losses
/// on made-up data stay finite. Borrows everything it is given.
class StepRig {
 public:
  StepRig(Recipe& recipe, const Registries& registries, RankSession& ranks, at::Device device,
          std::int64_t classes);

  [[nodiscard]] const TrainPlan& plan() const { return parts_.plan(); }
  /// What made-up batches for it look like.
  [[nodiscard]] FakeShape fake_shape() const;
  /// One step. @return this rank's loss, a scalar on the device.
  at::Tensor step(Batch batch);
  /// Passes so far that replayed a CUDA graph.
  [[nodiscard]] std::int64_t replayed_passes() const { return step_.replayed_passes(); }

 private:
  Recipe& recipe_;
  at::Device device_;
  Assembly parts_;
  engine::TrainStep step_;
  std::int64_t steps_taken_ = 0;
};

/// One stretch of steps, timed.
struct StepWindow {
  double seconds = 0;
  double cpu_seconds = 0;
  /// The last step's loss.
  double loss = 0;
  /// Passes that replayed a CUDA graph: most methods have one a step, sam two.
  std::int64_t replayed_passes = 0;
};

/// Takes that many steps and waits for the device once, at the end.
[[nodiscard]] StepWindow time_steps(StepRig& rig, BatchStream& batches, std::int64_t steps,
                                    at::Device device);

/// Waits until all that was given to the device is done. Nothing on CPUs.
void wait_for_device(at::Device device);

/// Runs `steps` steps under libtorch's profiler and writes what it saw to `path`, for
/// chrome://tracing or Perfetto. @throws IoError if the file cannot be written.
void write_step_trace(StepRig& rig, BatchStream& batches, std::int64_t steps, at::Device device,
                      const std::string& path);

}  // namespace precast::tools
