#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "framework/api/batch_source.h"
#include "framework/engine/train_step.h"
#include "tools/app/assembly.h"
#include "tools/app/rank_session.h"
#include "tools/app/resolved_run.h"
#include "tools/bench/torch/batch_stream.h"

namespace precast::tools {

/// The training step of a recipe, built from the same parts as in `precast train`, without epochs,
/// evaluation or a run folder. The learning rate is constant and small, so that losses on synthetic
/// data stay finite. For the methods, all steps belong to the first epoch of a long run. The
/// constructor's arguments must outlive the object.
class StepRig {
 public:
  StepRig(const ResolvedRun& run, const Registries& registries, RankSession& ranks,
          std::int64_t classes);

  [[nodiscard]] const TrainPlan& plan() const { return parts_.plan(); }
  [[nodiscard]] const Model& model() const { return parts_.model(); }
  /// The shape of synthetic batches for this recipe.
  [[nodiscard]] FakeShape fake_shape() const;
  /// Runs one step. @return this rank's loss, a scalar on the device.
  at::Tensor step(Batch batch);
  /// Counts steps from the first step of the run again, so that repeated measurements do the same
  /// work. Weights and the state of the optimiser do not change.
  void restart_count() { steps_taken_ = 0; }
  /// Number of steps to run before a measurement so that the measurement contains only replays of
  /// CUDA graphs; 0 if no graph is recorded.
  [[nodiscard]] std::int64_t steps_to_first_replay() const { return step_.steps_to_first_replay(); }
  /// Replays of CUDA graphs so far.
  [[nodiscard]] std::int64_t replayed_passes() const { return step_.replayed_passes(); }

 private:
  const ResolvedRun& run_;
  Assembly parts_;
  engine::TrainStep step_;
  std::int64_t steps_taken_ = 0;
};

/// The names of the methods that change the work of a step during the run.
[[nodiscard]] std::vector<std::string> varying_methods(const std::vector<NamedMethod>& methods);
/// Warns if varying_methods() is not empty, because only the first steps of a run are measured.
void warn_of_varying_steps(const std::vector<NamedMethod>& methods);

/// Returns a source of the recipe's training batches for a StepRig with this plan. The arguments
/// must outlive the source. @throws ConfigError if the samples do not fill a batch on `world`
/// ranks.
[[nodiscard]] std::unique_ptr<BatchSource> make_step_source(const data::BetonReader& reader,
                                                            const ResolvedRun& run,
                                                            const Registries& registries,
                                                            const TrainPlan& plan, int world);

/// One timed sequence of steps.
struct StepWindow {
  double seconds = 0;
  double cpu_seconds = 0;
  /// This rank's loss in the last step.
  double loss = 0;
  /// Replays of CUDA graphs: at most one per step, or two with the method sam.
  std::int64_t replayed_passes = 0;
};

/// Times the first `steps` steps of a run. Waits for the device before the first and after the last
/// step, but not between steps.
[[nodiscard]] StepWindow time_steps(StepRig& rig, BatchStream& batches, std::int64_t steps,
                                    at::Device device);

/// Waits until all work queued on the device is done. Does nothing on CPUs.
void wait_for_device(at::Device device);

/// Runs the first `steps` steps of a run under libtorch's profiler and writes the trace to `path`,
/// for chrome://tracing or Perfetto. @throws IoError if the file cannot be written.
void write_step_trace(StepRig& rig, BatchStream& batches, std::int64_t steps, at::Device device,
                      const std::string& path);

}  // namespace precast::tools
