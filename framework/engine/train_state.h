#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "framework/api/source_times.h"
#include "framework/engine/replaced_samples.h"

namespace precast::engine {

/// The position of a training run and its totals so far. With this and the tensors of a checkpoint,
/// a run continues as if it had not stopped.
struct TrainState {
  /// The current epoch and the number of its finished steps. If all steps are finished, the
  /// evaluation of the epoch is due.
  std::int64_t epoch = 0;
  std::int64_t step = 0;
  /// The values of this run's plan, which may differ from those in a checkpoint. If
  /// global_batch_size is 0 (unknown), restore_position() does not convert `step`.
  std::int64_t global_batch_size = 0;
  std::int64_t steps_per_epoch = 0;
  /// Number of finished steps, over all epochs.
  std::int64_t global_step = 0;
  /// Sum of this rank's losses over the steps of the epoch: scalar float64 on the device.
  at::Tensor loss_sum;
  /// The number of losses in loss_sum, also as a scalar float64 on the device.
  at::Tensor loss_count;
  /// Mean loss over the last finished epoch and all ranks; NaN if no epoch has finished.
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  /// The learning rate of the last step.
  double lr = 0;
  /// Factor applied to the plan's learning rate; reduced when a diverged run is restored.
  double lr_factor = 1;
  std::int64_t restores = 0;
  /// Number of images trained on, over all ranks.
  std::int64_t images_trained = 0;
  /// The metric by which evaluations are compared (TrainerOptions::best), its best value so far,
  /// and the epoch of that value. `best_epoch` is -1 if there was no evaluation.
  std::string best_metric;
  double best_value = -1;
  std::int64_t best_epoch = -1;
  /// From this global step on, the values stored with checkpoints are those of `best_metric`, from
  /// evaluations like those of this run; earlier checkpoints may have other values
  /// (Retention::best_since).
  std::int64_t best_since = 0;
  /// Steps that NonFinitePolicy::skip has discarded, over all epochs and in the current one, as far
  /// as they have been read from the device (TrainStep::take_skipped_steps()).
  std::int64_t skipped_steps = 0;
  std::int64_t epoch_skipped_steps = 0;
  double train_seconds = 0;
  double eval_seconds = 0;
  double wait_seconds = 0;
  /// How rank 0's training source spent its time in earlier processes of the run.
  SourceTimes loader_times;
  /// The samples that earlier processes of the run replaced, on all ranks.
  ReplacedSamples replaced;

  /// Adds steps of the current epoch to both counts of skipped steps.
  void add_skipped(std::int64_t steps);
  /// Moves to the first step of the next epoch.
  void begin_next_epoch();
};

/// The value of `loader_time` in the log: `{decoding, reading, blocked, ahead, copying}`.
[[nodiscard]] nlohmann::ordered_json to_json(const SourceTimes& times);

/// All members except the tensors, as JSON for a checkpoint.
[[nodiscard]] nlohmann::ordered_json position_of(const TrainState& state);
/// The position in a checkpoint's state. In checkpoints of earlier versions, the position contains
/// neither the best metric nor the global batch size; both are then taken from the run's identity.
/// @throws nlohmann::json's exceptions
[[nodiscard]] nlohmann::ordered_json position_in(const nlohmann::ordered_json& saved);
/// Reads into `state` what position_of() wrote. Values that checkpoints of earlier versions do not
/// have get their defaults. If the saved `best_metric` differs from that in `state`, `state` keeps
/// its own and has no best value; it has none either if `same_evaluation` is false. If the saved
/// global batch size differs, `state` keeps its own, and `step` becomes the number of steps of this
/// size that cover the same samples.
/// @param order_depends_on_batch_size whether the order of an epoch's samples depends on the global
/// batch size.
/// @param same_evaluation whether the saved run was evaluated as this run is
/// (CheckpointOptions::has_same_evaluation).
/// @return `state.step` divided by the saved number of finished steps: 1 unless the batch size or
/// the number of steps per epoch differs.
/// @throws CheckpointError if no whole number of steps covers the same samples, or if their order
/// then differs; nlohmann::json's exceptions
[[nodiscard]] double restore_position(const nlohmann::ordered_json& json, TrainState& state,
                                      bool order_depends_on_batch_size, bool same_evaluation);

}  // namespace precast::engine
