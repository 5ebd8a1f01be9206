#include "recipes/methods/sam.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/reciprocal.h>

#include "framework/api/step_strategy.h"
#include "recipes/methods/no_gradient_hooks.h"
#include "recipes/optim/layerwise.h"

namespace precast::recipes {
namespace {

/// Keeps the factor finite for a zero gradient (Composer's epsilon).
constexpr double kEpsilon = 1e-12;

class Sam final : public MethodWithoutGradientHooks, private StepStrategy {
 public:
  void options(Schema& schema) override {
    schema.add("rho", &rho_, "radius of the neighbourhood: length of the step towards higher loss")
        .min(0);
    schema
        .add("interval", &interval_,
             "N: every N-th step uses the gradient at a nearby point with higher loss; the other "
             "steps are plain")
        .min(1);
  }
  void on_batch(Batch& /*batch*/, std::int64_t global_step) override { step_ = global_step; }
  [[nodiscard]] bool varies_between_steps() const override { return rho_ > 0 && interval_ > 1; }
  [[nodiscard]] StepStrategy* step_strategy() override { return this; }

 private:
  [[nodiscard]] at::Tensor run(Batch& batch, StepPasses& passes) override {
    if (rho_ == 0 || (step_ + 1) % interval_ != 0)
      return passes.forward_backward(batch, /*last=*/true);
    return sharpness_aware_pass(batch, passes);
  }

  void rehearse(Batch& batch, StepPasses& passes) override {
    static_cast<void>(sharpness_aware_pass(batch, passes));
  }

  [[nodiscard]] at::Tensor sharpness_aware_pass(Batch& batch, StepPasses& passes) const {
    const at::Tensor loss = passes.forward_backward(batch, /*last=*/false);
    Tensors weights;
    Tensors gradients;
    for (const NamedTensor& parameter : passes.model().parameters()) {
      if (!parameter.tensor.grad().defined()) continue;
      weights.push_back(parameter.tensor.detach());
      gradients.push_back(parameter.tensor.grad());
    }
    const Tensors original = perturb_weights(weights, gradients);
    static_cast<void>(passes.forward_backward(batch, /*last=*/true));
    const at::NoGradGuard no_grad;
    at::_foreach_copy_(weights, original);
    return loss;
  }

  /// @return copies of the original weights, so that the caller can restore them bit for bit.
  [[nodiscard]] Tensors perturb_weights(const Tensors& weights, const Tensors& gradients) const {
    const at::NoGradGuard no_grad;
    Tensors original;
    for (const at::Tensor& weight : weights) original.push_back(at::empty_like(weight));
    if (weights.empty()) return original;
    at::_foreach_copy_(original, weights);
    const at::Tensor norm = at::linalg_vector_norm(norms_of(gradients));
    // The scale of a gradient scaler is a factor of the gradient and of its norm, so it cancels.
    const at::Tensor factor = (norm + kEpsilon).reciprocal() * rho_;
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i].add_((gradients[i] * factor).nan_to_num_(0, 0, 0));
    return original;
  }

  double rho_ = 0.05;
  std::int64_t interval_ = 1;
  std::int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<Method> make_sam() {
  return std::make_unique<Sam>();
}

}  // namespace precast::recipes
