#include "recipes/metrics/per_class_accuracy.h"

#include "recipes/metrics/class_counts.h"

namespace precast::recipes {
namespace {

class PerClassAccuracy final : public Metric {
 public:
  explicit PerClassAccuracy(std::int64_t ignore_index) : ignore_index_(ignore_index) {}

  [[nodiscard]] std::string name() const override { return "per_class_accuracy"; }
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::class_index || kind == TargetKind::class_mask;
  }
  [[nodiscard]] std::int64_t sums() const override { return 0; }
  [[nodiscard]] at::Tensor count(const at::Tensor& outputs, const Batch& batch) const override {
    const bool masks = outputs.dim() == 4;
    return count_best_classes(outputs, batch.target(), masks ? ignore_index_ : -1);
  }
  [[nodiscard]] double value(const at::Tensor& sums, std::int64_t /*samples*/) const override {
    const ClassCounts counts(sums);
    double sum = 0, classes = 0;
    for (std::size_t i = 0; i < counts.classes(); ++i) {
      if (counts.actual[i] == 0) continue;
      sum += counts.correct[i] / counts.actual[i];
      ++classes;
    }
    return classes > 0 ? sum / classes : 0;
  }

 private:
  std::int64_t ignore_index_;
};

}  // namespace

void PerClassAccuracyOptions::options(Schema& schema) {
  schema
      .add("ignore_index", &ignore_index,
           "class whose pixels are ignored; -1: none. Unset: the loss's ignore_index")
      .min(-1);
}

std::unique_ptr<Metric> make_per_class_accuracy(const PerClassAccuracyOptions& options) {
  return std::make_unique<PerClassAccuracy>(options.ignore_index);
}

}  // namespace precast::recipes
