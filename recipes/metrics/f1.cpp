#include "recipes/metrics/f1.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include "recipes/losses/target_shapes.h"
#include "recipes/metrics/class_counts.h"

namespace precast::recipes {
namespace {

class F1 final : public Metric {
 public:
  explicit F1(bool micro) : micro_(micro) {}

  [[nodiscard]] std::string name() const override { return micro_ ? "f1_micro" : "f1_macro"; }
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::multi_hot || kind == TargetKind::class_index;
  }
  [[nodiscard]] std::int64_t sums() const override { return 0; }

  /// Returns the numbers of correct, predicted and actual samples of each class, then the number of
  /// all samples if the targets are multi-hot, else 0.
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    const at::Tensor& target = batch.target();
    const bool multi_hot = target.dim() == 2;
    const at::Tensor multi_hot_samples =
        at::full({1}, multi_hot ? outputs.size(0) : 0, outputs.options().dtype(at::kDouble));
    if (!multi_hot)
      return at::cat({count_best_classes(outputs, target, /*ignore_index=*/-1), multi_hot_samples});
    require_multi_hot(outputs, target);
    const at::Tensor predicted = outputs.gt(0), actual = target.gt(0.5);
    const at::Tensor counts =
        at::stack({predicted.logical_and(actual).sum(0), predicted.sum(0), actual.sum(0)});
    return at::cat({counts.flatten().to(at::kDouble), multi_hot_samples});
  }

  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t /*samples*/) const override {
    const std::int64_t last = sums.size(0) - 1;
    const ClassCounts counts(sums.narrow(0, 0, last));
    const bool multi_hot = sums[last].item<double>() > 0;
    double correct = 0, total = 0, mean = 0, classes = 0;
    for (std::size_t i = 0; i < counts.classes(); ++i) {
      const double denominator = counts.predicted[i] + counts.actual[i];
      correct += counts.correct[i];
      total += denominator;
      if (denominator > 0) mean += 2 * counts.correct[i] / denominator;
      if (denominator > 0 || multi_hot) ++classes;
    }
    if (micro_) return total > 0 ? 2 * correct / total : 0;
    return classes > 0 ? mean / classes : 0;
  }

 private:
  bool micro_;
};

}  // namespace

void F1Options::options(Schema& schema) {
  schema
      .add("average", &average,
           "micro: computed from the counts of all classes together; macro: mean over the classes")
      .choices({"micro", "macro"});
}

std::unique_ptr<Metric> make_f1(const F1Options& options) {
  return std::make_unique<F1>(options.average == "micro");
}

}  // namespace precast::recipes
