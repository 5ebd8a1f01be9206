#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/core/archive/weights_spec.h"
#include "framework/engine/trainer.h"
#include "tests/support/fake_parts.h"

namespace precast::engine {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// When a run is stopped, and when NaN occurs in it.
struct Interruption {
  std::int64_t stop_at_step = kNever;
  std::int64_t stop_at_val_batch = kNever;
  /// The run is stopped at the start of this pass over the training data or the validation data.
  /// Passes are counted from 0 in each process.
  std::int64_t stop_at_train_pass = kNever;
  std::int64_t stop_at_val_pass = kNever;
  std::int64_t nan_at_step = kNever;
  /// Whether the gradients of all steps are NaN although their losses are finite.
  bool nan_gradients = false;
};

/// The results of a run.
struct Outcome {
  std::vector<std::pair<std::string, std::vector<float>>> tensors;
  std::vector<std::string> log;
  bool finished = false;
  std::vector<ReplacedSample> replaced;
  SourceTimes loader_times;
  std::int64_t images_trained = 0, process_images = 0, skipped_steps = 0;
  double eval_seconds = 0, last_eval_seconds = 0;

  bool operator==(const Outcome& other) const {
    return std::tie(tensors, log, finished) == std::tie(other.tensors, other.log, other.finished);
  }
};
/// @return the object `position` of the newest checkpoint's state.json.
nlohmann::json saved_position(const std::filesystem::path& folder);

/// Edits state.json of the newest checkpoint.
void edit_state(const std::filesystem::path& folder,
                const std::function<void(nlohmann::ordered_json& state)>& edit);

/// Runs a small training that is interrupted, and continues it.
class ResumeTest : public ::testing::TestWithParam<Precision> {
 protected:
  static constexpr std::int64_t kSteps = 5, kEpochs = 3, kBatch = 4;

  /// Trains until the run ends or is disturbed. Continues from the checkpoints in `folder`.
  Outcome run(const std::filesystem::path& folder, test::MemorySink& sink,
              const Interruption& disturbance = {}, NonFinitePolicy policy = NonFinitePolicy::stop);

  Precision precision_ = GetParam();
  bool any_precision_ = false;
  std::int64_t batch_size_ = kBatch, val_batch_size_ = 2;
  std::int64_t every_steps_ = 0, every_epochs_ = 1;
  std::int64_t epochs_ = kEpochs;
  bool evaluate_each_epoch_ = true;
  bool batch_sets_order_ = false;
  /// What CheckpointOptions::has_same_evaluation returns in the next run.
  bool same_evaluation_ = true;
  int max_threads_ = 0;
  std::optional<WeightsSpec> model_spec_;
  bool with_ema_ = true;
  /// Whether a method overrides eval_scope(), but not evaluates_averages().
  bool with_scope_ = false;
  std::vector<std::string> calls_;
  BestMetric best_;
  /// The samples that the validation source reports as replaced.
  std::vector<ReplacedSample> replaced_;
  /// The times that the training source of a process reports.
  SourceTimes loader_times_;
  /// The sample ids and the step numbers so far, including those before the run was resumed.
  std::vector<std::uint64_t> samples_;
  std::vector<std::int64_t> steps_;
  /// The name of the last parameter. It begins with the prefix that DistributedDataParallel adds.
  std::string last_tensor_ = "module.fc.weight";
  /// Names and options of further methods.
  std::vector<std::pair<std::string, std::string>> more_methods_;
};

}  // namespace precast::engine
