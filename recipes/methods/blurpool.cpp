#include "recipes/methods/blurpool.h"

#include "framework/api/train_plan.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class BlurPool final : public MethodWithoutGradientHooks {
 public:
  void configure(TrainPlan& plan) const override { plan.model.blurpool = true; }
};

}  // namespace

std::unique_ptr<Method> make_blurpool() {
  return std::make_unique<BlurPool>();
}

}  // namespace precast::recipes
