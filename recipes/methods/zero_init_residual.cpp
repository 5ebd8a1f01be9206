#include "recipes/methods/zero_init_residual.h"

#include "recipes/methods/model_params.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class ZeroInitResidual final : public MethodWithoutGradientHooks {
 public:
  void configure(TrainPlan& plan) const override {
    set_model_params(plan, "zero_init_residual", "zero_init_residual", {{"", "true"}});
  }
};

}  // namespace

std::unique_ptr<Method> make_zero_init_residual() {
  return std::make_unique<ZeroInitResidual>();
}

}  // namespace precast::recipes
