#include "recipes/methods/adaptive_gradient_clipping.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/linalg_vector_norm.h>

#include <numeric>

#include "framework/api/model.h"

namespace precast::recipes {
namespace {

/// The norm of each unit, in a shape that broadcasts to the tensor's.
at::Tensor unit_norms(const at::Tensor& tensor) {
  if (tensor.dim() < 2) return at::linalg_vector_norm(tensor, /*ord=*/2);
  std::vector<std::int64_t> dims(static_cast<std::size_t>(tensor.dim() - 1));
  std::iota(dims.begin(), dims.end(), 1);
  return at::linalg_vector_norm(tensor, /*ord=*/2, dims, /*keepdim=*/true);
}

class AdaptiveGradientClipping final : public Method {
 public:
  void options(Schema& schema) override {
    schema
        .add("threshold", &threshold_,
             "maximum ratio of the norm of an output channel's gradient to the norm of its weights")
        .above(0);
    schema.add("epsilon", &epsilon_, "lower bound for the norm of the weights in that ratio")
        .above(0);
  }

  void on_gradients(Model& model) override {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    std::vector<at::Tensor> gradient_norms;
    std::vector<at::Tensor> factors;
    for (const NamedTensor& parameter : model.parameters()) {
      if (!parameter.tensor.grad().defined()) continue;
      gradients.push_back(parameter.tensor.grad());
      gradient_norms.push_back(unit_norms(parameter.tensor.grad()));
      factors.push_back(unit_norms(parameter.tensor));
    }
    if (gradients.empty()) return;
    // For a gradient of zero, the division gives infinity, which is clamped to 1.
    at::_foreach_clamp_min_(factors, epsilon_);
    at::_foreach_mul_(factors, threshold_);
    at::_foreach_div_(factors, gradient_norms);
    at::_foreach_clamp_max_(factors, 1.0);
    at::_foreach_mul_(gradients, factors);
  }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }

 private:
  double threshold_ = 0.01;
  double epsilon_ = 1e-3;
};

}  // namespace

std::unique_ptr<Method> make_adaptive_gradient_clipping() {
  return std::make_unique<AdaptiveGradientClipping>();
}

}  // namespace precast::recipes
