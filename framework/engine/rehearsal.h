#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/api/train_plan.h"
#include "framework/core/export.h"
#include "framework/engine/evaluator.h"
#include "framework/engine/train_step.h"

namespace precast::engine {

struct RehearsalOptions {
  at::Device device = at::kCPU;
  /// Create batches like those of the sources.
  BatchMaker train_batch = {};
  BatchMaker val_batch = {};
  /// The number of batches that a source stores on the device in addition to the one in use.
  std::int64_t batches_ahead = 0;
  std::int64_t val_batch_size = 1;
  /// The number of samples in the complete validation set.
  std::int64_t val_samples = 0;
  /// Whether the run evaluates after each epoch; otherwise only after the last one.
  bool evaluate_each_epoch = true;
  /// The stored images that the run will keep on the device (data.in_memory: gpu), in bytes.
  std::uint64_t stored_image_bytes = 0;
};

/// The image sizes that training will use, largest first: the size that needs the most memory is
/// tried first, and the allocator reuses its memory for all others.
[[nodiscard]] PRECAST_API std::vector<std::int64_t> sizes_to_rehearse(const TrainPlan& plan);

/// Runs once, on synthetic samples, every kind of work that the run will do: a training step
/// without an update (if a method replaces the step, the most expensive of its steps) at the plan's
/// largest image size, an evaluation (a full batch and the partial last one), then a step at every
/// other size. A run that does not fit in memory thus fails immediately instead of in its last
/// epochs, and cuDNN has found its fastest kernels before any time is measured.
///
/// Afterwards, parameters, running statistics and the default random generators are unchanged,
/// there are no gradients, and the model is in evaluation mode. Communicates with other ranks only
/// for synchronised batch norms. The temporary memory of optimisers and the memory that methods
/// allocate are not tested. If this function throws, the model is no longer usable.
/// @throws Error with ExitCode::out_of_memory naming the phase, the image size, the batch size, the
/// epoch in which the run would have failed, and the settings to lower, or naming the stored images
/// if they alone do not fit; Error if a batch norm has only one value per channel
/// (TrainStep::run()).
PRECAST_API void rehearse(const TrainPlan& plan, const StepParts& parts, const Evaluator& evaluator,
                          const RehearsalOptions& options);

}  // namespace precast::engine
