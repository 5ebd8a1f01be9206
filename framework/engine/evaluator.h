#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/api/batch_source.h"
#include "framework/api/communicator.h"
#include "framework/api/loss.h"
#include "framework/api/method.h"
#include "framework/api/metric.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"
#include "framework/engine/metric_counts.h"

namespace precast::engine {

struct EvaluatorOptions {
  at::Device device = at::kCPU;
  Precision precision = Precision::fp32;
  bool channels_last = true;
  std::int64_t image_size_px = 224;
  /// Whether to add the outputs for the mirrored images, if the inputs are images (test-time
  /// augmentation by left-right flips). As in ffcv-imagenet, the outputs are summed, not averaged.
  bool flip_tta = true;
  /// Metrics to compute in addition to the loss and, for class indices, top-1 and top-5.
  Metrics metrics = {};
  TargetKind targets = TargetKind::class_index;
  /// If the outputs are logits of this number of classes, samples and correct predictions are also
  /// counted per class; with 0, nothing is counted per class.
  std::int64_t num_classes = 0;
};

/// Counts of one class.
struct ClassCount {
  std::int64_t samples = 0;
  std::int64_t top_1_correct = 0;
};

/// The result for a whole dataset. Counts are integers, so that sums over ranks are exact. If the
/// outputs are not logits or the targets are not class indices, no sample counts as correct.
struct PRECAST_API EvalResult {
  std::int64_t samples = 0;
  std::int64_t top_1_correct = 0;
  std::int64_t top_5_correct = 0;
  /// Mean loss; with flip TTA, the loss of the summed outputs.
  double loss = 0;
  double seconds = 0;
  /// Names and values of EvaluatorOptions::metrics, in the same order.
  std::vector<std::pair<std::string, double>> metrics = {};
  /// Indexed by class; empty if nothing was counted per class (see EvaluatorOptions::num_classes).
  std::vector<ClassCount> classes = {};
  /// Whether the result has top-1 and top-5.
  bool is_classification = true;

  [[nodiscard]] double top_1() const;
  [[nodiscard]] double top_5() const;
  /// All values except the loss, with their names: top_1 and top_5 if `is_classification`, then
  /// `metrics`.
  [[nodiscard]] std::vector<std::pair<std::string, double>> figures() const;
  /// The value called `name` in figures(), or the loss for `val_loss`; NaN for any other name.
  [[nodiscard]] double figure(std::string_view name) const;
};

/// Runs a model over data without training it. Every sample counts once: batches are not padded,
/// and the last, incomplete batch is not dropped.
class PRECAST_API Evaluator {
 public:
  explicit Evaluator(EvaluatorOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::int64_t image_size_px() const { return options_.image_size_px; }

  /// Called after each batch. evaluate() passes the number of samples that this rank has evaluated
  /// so far, and calls it the same number of times on every rank, even if a rank has no more
  /// batches.
  /// @return false to stop the evaluation; must be the same on all ranks
  using OnBatch = std::function<bool(std::int64_t samples)>;

  /// Each rank evaluates its share of the source; the result counts the samples of all ranks.
  /// Switches the model to evaluation mode and leaves it there.
  /// @return nothing if `on_batch` stopped the evaluation, if a rank was asked to stop
  /// (StopSignals) before the first batch, or, in a run with one rank, if it was asked to stop
  /// while it waited for a batch
  [[nodiscard]] std::optional<EvalResult> evaluate(Model& model, const Loss& loss,
                                                   BatchSource& source, Communicator& ranks,
                                                   const OnBatch& on_batch) const;
  /// On rank 0, returns the outputs of every sample (such as logits [N, classes]), float32 on the
  /// CPU; on other ranks, an undefined tensor. Batch b of the result is batch b / world of rank b %
  /// world, so on CPUs with the same number of threads per rank, the result does not depend on the
  /// number of ranks. Collective.
  /// @param source contains only this rank's batches, so predict() starts its pass as rank 0 of 1;
  /// null if this rank has no batches.
  /// @param on_batch is called after each round of one batch per rank, with the number of samples
  /// that all ranks have evaluated so far. If it returns false, the result contains only these
  /// samples.
  /// @throws DataError if no rank has a sample.
  [[nodiscard]] at::Tensor predict(Model& model, BatchSource* source, Communicator& ranks,
                                   const OnBatch& on_batch) const;

 private:
  struct Counts {
    /// [3]: top-1 correct, top-5 correct, samples.
    at::Tensor integers;
    /// [2, num_classes + 1]: samples and top-1 correct of each class. The last column counts
    /// targets that are not classes.
    at::Tensor classes;
    at::Tensor loss;
    MetricCounts metrics;
  };
  [[nodiscard]] Counts zero_counts() const;
  void count_top_k(const at::Tensor& output, const at::Tensor& labels, Counts& counts) const;
  void count_classes(const at::Tensor& labels, const at::Tensor& correct, Counts& counts) const;
  void count(Model& model, const Loss& loss, Batch& batch, Counts& counts) const;
  /// The result, except for the metrics and the time. @param counts the sums over all ranks.
  [[nodiscard]] EvalResult result_of(const Counts& counts) const;
  [[nodiscard]] at::Tensor outputs(Model& model, Batch& batch) const;

  EvaluatorOptions options_;
};

}  // namespace precast::engine
