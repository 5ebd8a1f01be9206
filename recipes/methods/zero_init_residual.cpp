#include "recipes/methods/zero_init_residual.h"

#include "recipes/methods/model_params.h"

namespace precast::recipes {
namespace {

class ZeroInitResidual final : public Method {
 public:
  void configure(TrainPlan& plan) const override {
    set_model_params(plan, "zero_init_residual", "zero_init_residual", {{"", "true"}});
  }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }
};

}  // namespace

std::unique_ptr<Method> make_zero_init_residual() {
  return std::make_unique<ZeroInitResidual>();
}

}  // namespace precast::recipes
