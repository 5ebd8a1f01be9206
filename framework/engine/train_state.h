#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace precast::engine {

/// Where a training run stands, apart from its tensors. A checkpoint holds it, and a run goes on
/// from it as if it had not stopped.
struct TrainState {
  /// The epoch in work, and the steps of it that are done. All of them done: its evaluation is due.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  /// Steps done over all epochs.
  std::int64_t global_step = 0;
  /// Sum of this rank's losses over the steps of the epoch: scalar float64 on the device.
  at::Tensor loss_sum;
  /// How many losses that is, the same way.
  at::Tensor loss_count;
  /// Mean over the last whole epoch and all ranks.
  double train_loss = 0;
  /// The rate of the last step.
  double lr = 0;
  /// What the plan's rate is multiplied by: falls when a diverged run is taken up again.
  double lr_factor = 1;
  std::int64_t restores = 0;
  /// Over all ranks.
  std::int64_t images_trained = 0;
  double train_seconds = 0;
  double eval_seconds = 0;
  double wait_seconds = 0;
};

}  // namespace precast::engine
