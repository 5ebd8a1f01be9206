#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/communicator.h"
#include "framework/api/method.h"
#include "framework/api/metric_sink.h"
#include "framework/api/model.h"
#include "framework/api/optimizer.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/export.h"
#include "framework/engine/train_state.h"

namespace precast::engine {

struct CheckpointOptions {
  /// `<run folder>/checkpoints`; all ranks must be able to access it under this path.
  std::filesystem::path folder;
  /// Save after every `every_steps` steps, and after every `every_epochs` epochs; 0 means never.
  /// Unless both are 0, also after the last epoch.
  std::int64_t every_steps = 0;
  std::int64_t every_epochs = 1;
  /// Number of newest checkpoints to keep, and number of checkpoints with the best metric to keep.
  std::int64_t keep_last = 2;
  std::int64_t keep_best = 1;
  /// Number of newest checkpoints to keep once the run has finished; at most keep_last.
  std::int64_t keep_finished = 1;
  /// Whether resume() looks for a checkpoint.
  bool resume = true;
  /// Whether to accept a checkpoint with a gradient scaler in a run without one, or the reverse. If
  /// only this run has a scaler, the scaler keeps its initial state.
  bool allow_precision_change = false;
  /// Whether the order of an epoch's samples depends on the global batch size. A checkpoint in the
  /// middle of an epoch is then accepted only with the same size.
  bool order_depends_on_batch_size = false;
  /// Whether the run with this saved identity was evaluated as this run is: on the same data, with
  /// the same settings. If not, its best value so far is discarded. If null, every saved run counts
  /// as evaluated in the same way.
  std::function<bool(const nlohmann::ordered_json& saved)> has_same_evaluation = {};
  /// On a CPU: resume() does not set more compute threads than this, even if the checkpoint was
  /// saved with more.
  int max_threads = 0;
  /// Whether each rank's optimiser holds the state of only some parameters (ZeRO); rank 0 then
  /// collects the state of all ranks.
  bool sharded_optimizer = false;
  /// Whether this rank's optimiser may have only some of the saved tensors, or none (with ZeRO or a
  /// parameter server).
  bool partial_optimizer = false;
  /// Stored in the file with the model. Layers that the spec lists as blurred have ffcv-imagenet's
  /// names in the file, as in save_model_weights().
  std::optional<WeightsSpec> model_spec = {};
};

/// The objects whose state is saved. All are borrowed.
struct CheckpointParts {
  Model& model;
  Optimizer& optimizer;
  const std::vector<NamedMethod>& methods;
  Communicator& ranks;
  at::Device device;
};

/// Compares this run with the saved run that it resumes (configuration, dataset, versions).
/// @throws CheckpointError listing all differences if they do not match.
using IdentityCheck = std::function<void(const nlohmann::ordered_json& saved)>;

/// Saves everything that a run needs to continue as if it had not stopped, and restores it:
/// parameters, running statistics, optimiser, methods, gradient scaler, random generators of all
/// ranks, number of compute threads, position, totals and best metric so far, length of the log.
/// Format: README.md. Only rank 0 writes: a thread writes a copy of the tensors while training
/// continues.
///
/// save(), finish(), finish_run(), resume() and restore() are collective. Not thread-safe.
class PRECAST_API Checkpointer {
 public:
  /// @param identity a description of the run, stored with the state; `check` receives it when the
  /// run is resumed. @throws IoError
  Checkpointer(CheckpointOptions options, CheckpointParts parts, nlohmann::ordered_json identity,
               IdentityCheck check);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  /// Waits for the writing thread.
  ~Checkpointer();
  /// Sets the identity that later checkpoints contain.
  void set_identity(nlohmann::ordered_json identity);

  /// Adds the parts that belong to the trainer. Call before the first step, after the methods'
  /// on_train_begin(). @param scaler may be null. @param sinks empty on all ranks except rank 0.
  /// @throws ConfigError naming the part if checkpoints cannot store a tensor of the optimiser or
  /// of a method
  void attach(Stateful* scaler, std::vector<MetricSink*> sinks);
  /// Whether to save after this step. After the last step of an epoch, evaluate first and then call
  /// due_after_epoch() instead, so that the checkpoint contains the metric.
  [[nodiscard]] bool due_after_step(const TrainState& state) const;
  /// Whether to save after this epoch. Also true if a checkpoint is due after its last step.
  /// @param last whether the epoch was the last one of the run.
  [[nodiscard]] bool due_after_epoch(const TrainState& state, bool last) const;
  /// Waits for the previous checkpoint, copies the state and returns; a thread writes the copy to
  /// disk. A failed write causes a warning, and older checkpoints are kept. After three consecutive
  /// failures, the next call is an error, unless `complete` is set.
  /// @param metric nothing if the weights were not evaluated; if the run was restored at this step,
  /// the metric of the restored checkpoint is then saved.
  /// @param complete whether the run has trained and evaluated its last epoch. If so, earlier
  /// failures are not an error, because the results must still be written.
  /// @return false, and nothing is saved, if a weight, a buffer or the sum of the losses is NaN or
  /// infinite on any rank. Buffers that were not finite in attach() do not count.
  /// @throws Error naming the part if the tensors of the optimiser or of a method are not the same
  /// as in attach(); IoError
  [[nodiscard]] bool save(const TrainState& state, std::optional<double> metric,
                          bool complete = false);
  /// Call when a run stops: waits until the last checkpoint is on disk. @throws IoError if it could
  /// not be written
  void finish();
  /// Call after the results of a complete run have been written: waits until the last checkpoint is
  /// on disk, and removes the checkpoints that only an unfinished run needs. A failed write is only
  /// a warning.
  void finish_run();
  /// Call at the start of a run. Calls restore() if CheckpointOptions::resume is set. If nothing is
  /// restored, discards the records of earlier attempts in the sinks.
  /// @return whether a checkpoint was restored
  /// @throws CheckpointError if there are checkpoints and all of them are damaged; the errors of
  /// restore()
  [[nodiscard]] bool resume(TrainState& state);
  /// Restores the newest intact checkpoint. @return false if there is none
  /// @throws CheckpointError if it does not match this run; IoError
  [[nodiscard]] bool restore(TrainState& state);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace precast::engine
