#include "recipes/methods/gradient_clipping.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/reciprocal.h>

#include "framework/api/model.h"
#include "recipes/optim/layerwise.h"

namespace precast::recipes {
namespace {

/// Keeps the factor finite for a zero gradient (the same value as in clip_grad_norm_).
constexpr double kEpsilon = 1e-6;

class GradientClipping final : public Method {
 public:
  void options(Schema& schema) override {
    schema.add("max_norm", &max_norm_, "maximum norm of the gradient over all parameters").above(0);
  }

  void on_gradients(Model& model) override {
    const at::NoGradGuard no_grad;
    Tensors gradients;
    for (const NamedTensor& parameter : model.parameters()) {
      if (parameter.tensor.grad().defined()) gradients.push_back(parameter.tensor.grad());
    }
    if (gradients.empty()) return;
    const at::Tensor norm = at::linalg_vector_norm(norms_of(gradients));
    // Multiplies even if the factor is 1: to skip this, the host would have to wait for the norm.
    const at::Tensor factor = ((norm + kEpsilon).reciprocal() * max_norm_).clamp_max(1.0);
    at::_foreach_mul_(gradients, factor);
  }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return max_norm_; }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }

 private:
  double max_norm_ = 1;
};

}  // namespace

std::unique_ptr<Method> make_gradient_clipping() {
  return std::make_unique<GradientClipping>();
}

}  // namespace precast::recipes
