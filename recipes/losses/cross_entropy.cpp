#include "recipes/losses/cross_entropy.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>

#include "framework/core/error.h"
#include "recipes/detail/fused_logits.h"

namespace precast::recipes {
namespace {

constexpr std::int64_t kIgnoredLabel = -100;

class CrossEntropy final : public TargetLoss {
 public:
  explicit CrossEntropy(const CrossEntropyOptions& options)
      : label_smoothing_(options.label_smoothing), fused_(options.fused()) {}

  [[nodiscard]] at::Tensor mean(const at::Tensor& logits, const at::Tensor& labels) const override {
    if (fused_ && detail::can_fuse(logits, labels))
      return detail::fused_cross_entropy(logits, labels, label_smoothing_);
    return reduced(logits, labels, at::Reduction::Mean);
  }

  [[nodiscard]] at::Tensor each(const at::Tensor& logits, const at::Tensor& labels) const override {
    return reduced(logits, labels, at::Reduction::None);
  }

 private:
  [[nodiscard]] at::Tensor reduced(const at::Tensor& logits, const at::Tensor& labels,
                                   std::int64_t reduction) const {
    require(logits.dim() == 2 && labels.dim() >= 1 && labels.size(0) == logits.size(0),
            "logits are [N, classes] and labels have N rows");
    const bool indices = labels.dim() == 1 && labels.scalar_type() == at::kLong;
    const bool probabilities = labels.sizes() == logits.sizes() && labels.is_floating_point();
    require(indices || probabilities, "labels are [N] int64 or [N, classes] float");
    return at::cross_entropy_loss(logits.to(at::kFloat),
                                  probabilities ? labels.to(at::kFloat) : labels, /*weight=*/{},
                                  reduction, kIgnoredLabel, label_smoothing_);
  }

  double label_smoothing_;
  bool fused_;
};

}  // namespace

void CrossEntropyOptions::options(Schema& schema) {
  schema
      .add("label_smoothing", &label_smoothing,
           "fraction of the probability that is spread over all classes")
      .min(0)
      .below(1);
  KernelChoice::options(schema);
}

std::unique_ptr<Loss> make_cross_entropy(const CrossEntropyOptions& options) {
  return std::make_unique<CrossEntropy>(options);
}

}  // namespace precast::recipes
