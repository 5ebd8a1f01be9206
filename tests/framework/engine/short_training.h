#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/engine/checkpointer.h"
#include "framework/engine/train_step.h"
#include "tests/support/tape_recorder.h"

namespace precast::engine {

/// How the steps of a training run are executed.
enum class Mode {
  /// Steps run without a StepGraph.
  plain,
  /// Steps run with a StepGraph for whole steps that never records.
  unrecorded,
  recorded,
};

/// The settings of a ShortTraining.
struct TrainingOptions {
  /// `linear`, `layers` (a small residual network) or a registered model.
  std::string model = "layers";
  std::string optimizer = "sgd";
  std::string optimizer_options{};
  /// Names and options of the methods.
  std::vector<std::pair<std::string, std::string>> methods{};
  Precision precision = Precision::fp32;
  std::int64_t micro_batches = 1;
  bool skip_nonfinite = false;
  /// The largest number of recordings that are kept at the same time.
  std::size_t kept = 8;
  /// The number of steps of a size before it is recorded.
  int warm_ups = StepGraph::kWarmUps;
  int steps = 7;
  std::function<std::int64_t(int step)> size_px = [](int) { return 32; };
  /// Changes the batch of a step.
  std::function<void(int step, Batch& batch)> edit = [](int, Batch&) {};
  /// Called in each forward pass that is not replayed, before the loss is computed.
  std::function<void(const test::TapeLog& log)> in_forward = [](const test::TapeLog&) {};
  /// The world size. The training runs as rank zero; other ranks do not exist.
  int world = 1;
  /// Whether gradients are averaged on one rank only.
  bool gradients_on_one_rank = false;
  /// If set, creates the optimiser, and `optimizer` is ignored.
  std::function<std::unique_ptr<Optimizer>(const Model& model)> make_optimizer{};
};

/// An interruptible training run of a few steps on a CPU. Runs with the same options take the same
/// steps; with Mode::recorded, a TapeRecorder records them after `warm_ups` steps of each size.
class ShortTraining {
 public:
  static constexpr std::int64_t kBatch = 4;
  static constexpr std::int64_t kClasses = 5;

  ShortTraining(TrainingOptions options, Mode mode);
  ShortTraining(const ShortTraining&) = delete;
  ShortTraining& operator=(const ShortTraining&) = delete;
  ~ShortTraining() = default;

  /// Adds a method that has no step strategy and no state, before the first step.
  void add_method(const std::string& name, std::unique_ptr<Method> method);
  void run() { run_to(options_.steps); }
  /// Takes the steps before `end`.
  void run_to(int end);
  /// Drops the recordings, as an evaluation does.
  void drop_recordings() { step_->drop_recordings(); }
  /// Sets the number of the next step, for a state that was restored from a checkpoint.
  void go_to(std::int64_t step) { next_ = static_cast<int>(step); }
  [[nodiscard]] CheckpointParts checkpoint_parts() {
    return {*model_, *optimizer_, methods_, *ranks_, at::kCPU};
  }
  [[nodiscard]] GradScaler* scaler() { return step_->scaler(); }
  /// Continues from the state of another run, as from its checkpoint.
  void restore(const ShortTraining& other);

  /// The tensors that a checkpoint would contain, and the sum of the finite losses. They share
  /// memory with this training.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  /// The loss of each step since the construction.
  [[nodiscard]] const std::vector<double>& losses() const { return losses_; }
  [[nodiscard]] const test::TapeLog& log() const { return log_; }
  [[nodiscard]] std::int64_t take_skipped_steps() { return step_->take_skipped_steps(); }
  [[nodiscard]] std::int64_t replays() const { return step_->replayed_passes(); }
  [[nodiscard]] std::int64_t steps_to_first_replay() const {
    return step_->steps_to_first_replay();
  }

 private:
  [[nodiscard]] std::unique_ptr<Optimizer> make_optimizer() const;
  [[nodiscard]] std::unique_ptr<StepGraph> make_graph(Mode mode);
  [[nodiscard]] Batch make_batch() const;

  TrainingOptions options_;
  TrainPlan plan_;
  std::unique_ptr<Communicator> ranks_;
  std::unique_ptr<GradSync> sync_;
  std::vector<NamedMethod> methods_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<Optimizer> optimizer_;
  test::TapeLog log_;
  std::unique_ptr<TrainStep> step_;
  at::Tensor loss_sum_;
  std::vector<double> losses_;
  int next_ = 0;
};

/// The names of the tensors that differ between the two states, and "losses" if the losses differ.
/// NaN equals NaN.
[[nodiscard]] std::vector<std::string> differences(const ShortTraining& one,
                                                   const ShortTraining& other);

}  // namespace precast::engine
