#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/loss.h"
#include "framework/api/model_spec.h"
#include "framework/api/optimizer.h"
#include "framework/api/schedule.h"
#include "framework/core/config/part.h"
#include "framework/core/export.h"

namespace precast {

enum class Precision { fp32, fp16, bf16 };

/// The settings of a training run that methods may edit in configure(), except seed,
/// steps_per_epoch, global_batch_size, repeats, peak_lr, and the model's num_classes, in_channels
/// and targets: other parts read these from the recipe, so changing them is an error (exit code 2).
/// A plan without a schedule, or with a number outside the limits given here, is also an error. A
/// method that changes the number of epochs must also resize image_size_px and, if necessary,
/// replace the schedule. The trainer only reads the plan. `precast train --dry-run` shows it.
struct PRECAST_API TrainPlan {
  ModelSpec model;
  /// The seed of every random choice. Methods must not change it.
  std::uint64_t seed = 0;
  std::int64_t epochs = 0;
  /// Not for methods to change.
  std::int64_t steps_per_epoch = 0;
  /// Samples per step, over all ranks and micro-batches. Methods must not change it.
  std::int64_t global_batch_size = 0;
  /// Number of backward passes whose gradients are accumulated for one step: at least 1, and a
  /// divisor of the batch size of one rank.
  std::int64_t micro_batches = 1;
  /// Side of the square training images in px, at least 1; exactly one entry per epoch.
  std::vector<std::int64_t> image_size_px;
  /// Never null.
  std::shared_ptr<const Schedule> schedule;
  /// Methods may replace the loss and set its options.
  PartSpec loss{"cross_entropy"};
  PartSpec optimizer{"sgd"};
  /// The schedule's highest learning rate; `sgdw`, for example, scales its weight decay by lr /
  /// peak_lr. Methods must not change it, but may replace the schedule.
  double peak_lr = 0;
  Precision precision = Precision::fp32;
  bool channels_last = false;
  /// data.repeats. Not for methods to change.
  std::int64_t repeats = 1;

  /// The schedule's learning rate for one step.
  [[nodiscard]] double lr(std::int64_t epoch, std::int64_t step) const;
};

}  // namespace precast
