#include "recipes/losses/bce.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gt.h>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

class Bce final : public TargetLoss {
 public:
  explicit Bce(const BceOptions& options) : options_(options) {}

  [[nodiscard]] at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    const at::Tensor loss = elementwise(logits, labels);
    return options_.sum_classes ? loss.sum(1).mean() : loss.mean();
  }

  [[nodiscard]] at::Tensor each(const at::Tensor& logits, const at::Tensor& labels) const override {
    const at::Tensor loss = elementwise(logits, labels);
    return options_.sum_classes ? loss.sum(1) : loss.mean(1);
  }

 private:
  [[nodiscard]] at::Tensor elementwise(const at::Tensor& logits, const at::Tensor& labels) const {
    return at::binary_cross_entropy_with_logits(logits.to(at::kFloat), targets(logits, labels),
                                                /*weight=*/{}, /*pos_weight=*/{},
                                                at::Reduction::None);
  }

  /// [N, classes] float32.
  [[nodiscard]] at::Tensor targets(const at::Tensor& logits, const at::Tensor& labels) const {
    require(logits.dim() == 2 && labels.dim() >= 1 && labels.size(0) == logits.size(0),
            "logits are [N, classes] and labels have N rows");
    const bool indices = labels.dim() == 1 && labels.scalar_type() == at::kLong;
    require(indices || (labels.sizes() == logits.sizes() && labels.is_floating_point()),
            "labels are [N] int64 or [N, classes] float");
    const auto [on, off] = options_.smoothed(logits.size(1));
    at::Tensor target;
    if (indices) {
      target = at::full(logits.sizes(), off, logits.options().dtype(at::kFloat));
      target.scatter_(1, labels.unsqueeze(1), on);
    } else {
      target = labels.to(at::kFloat) * (on - off) + off;
    }
    if (options_.target_threshold < 0) return target;
    return target.gt(options_.target_threshold).to(at::kFloat);
  }

  BceOptions options_;
};

}  // namespace

void BceOptions::options(Schema& schema) {
  schema
      .add("label_smoothing", &label_smoothing,
           "fraction of the probability that is spread over all classes")
      .min(0)
      .below(1);
  schema.add("sum_classes", &sum_classes, "sum over the classes instead of averaging");
  schema
      .add("target_threshold", &target_threshold,
           "0 or more: targets above it count as 1, others as 0; below 0: targets are unchanged")
      .below(1);
}

std::unique_ptr<Loss> make_bce(const BceOptions& options) {
  return std::make_unique<Bce>(options);
}

}  // namespace precast::recipes
