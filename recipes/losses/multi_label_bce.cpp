#include "recipes/losses/multi_label_bce.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/full.h>

#include "recipes/losses/target_shapes.h"

namespace precast::recipes {
namespace {

class MultiLabelBce final : public TargetLoss {
 public:
  explicit MultiLabelBce(double pos_weight) : pos_weight_(pos_weight) {}

  [[nodiscard]] TargetKind target_kind() const override { return TargetKind::multi_hot; }
  [[nodiscard]] at::Tensor mean(const at::Tensor& logits, const at::Tensor& target) const override {
    return elementwise(logits, target).mean();
  }
  [[nodiscard]] at::Tensor each(const at::Tensor& logits, const at::Tensor& target) const override {
    return elementwise(logits, target).mean(1);
  }

 private:
  [[nodiscard]] at::Tensor elementwise(const at::Tensor& logits, const at::Tensor& target) const {
    require_multi_hot(logits, target);
    const at::Tensor scores = logits.to(at::kFloat);
    return at::binary_cross_entropy_with_logits(
        scores, target.to(at::kFloat), /*weight=*/{},
        pos_weight_ == 1 ? at::Tensor() : at::full({1}, pos_weight_, scores.options()),
        at::Reduction::None);
  }

  double pos_weight_;
};

}  // namespace

void MultiLabelBceOptions::options(Schema& schema) {
  schema
      .add("pos_weight", &pos_weight,
           "factor for the loss of positive targets, the same for all classes")
      .above(0);
}

std::unique_ptr<Loss> make_multi_label_bce(const MultiLabelBceOptions& options) {
  return std::make_unique<MultiLabelBce>(options.pos_weight);
}

}  // namespace precast::recipes
