#include "recipes/losses/value_losses.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>

#include <functional>

#include "recipes/losses/target_shapes.h"

namespace precast::recipes {
namespace {

/// Receives outputs and targets of the same shape, and returns the loss of each element.
using Errors = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

class ValueLoss final : public TargetLoss {
 public:
  explicit ValueLoss(Errors errors) : errors_(std::move(errors)) {}

  [[nodiscard]] TargetKind target_kind() const override { return TargetKind::values; }
  [[nodiscard]] at::Tensor mean(const at::Tensor& outputs,
                                const at::Tensor& target) const override {
    return elementwise(outputs, target).mean();
  }
  [[nodiscard]] at::Tensor each(const at::Tensor& outputs,
                                const at::Tensor& target) const override {
    return elementwise(outputs, target).reshape({outputs.size(0), -1}).mean(1);
  }

 private:
  [[nodiscard]] at::Tensor elementwise(const at::Tensor& outputs, const at::Tensor& target) const {
    return errors_(outputs.to(at::kFloat), values_like(outputs, target).to(at::kFloat));
  }

  Errors errors_;
};

}  // namespace

void HuberOptions::options(Schema& schema) {
  schema.add("delta", &delta, "absolute error above which the loss is linear").above(0);
}

std::unique_ptr<Loss> make_mse() {
  return std::make_unique<ValueLoss>([](const at::Tensor& outputs, const at::Tensor& target) {
    return at::mse_loss(outputs, target, at::Reduction::None);
  });
}

std::unique_ptr<Loss> make_l1() {
  return std::make_unique<ValueLoss>([](const at::Tensor& outputs, const at::Tensor& target) {
    return at::l1_loss(outputs, target, at::Reduction::None);
  });
}

std::unique_ptr<Loss> make_huber(const HuberOptions& options) {
  return std::make_unique<ValueLoss>(
      [delta = options.delta](const at::Tensor& outputs, const at::Tensor& target) {
        return at::huber_loss(outputs, target, at::Reduction::None, delta);
      });
}

}  // namespace precast::recipes
