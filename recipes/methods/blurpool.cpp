#include "recipes/methods/blurpool.h"

#include "framework/api/train_plan.h"

namespace precast::recipes {
namespace {

class BlurPool final : public Method {
 public:
  void configure(TrainPlan& plan) const override { plan.model.blurpool = true; }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }
};

}  // namespace

std::unique_ptr<Method> make_blurpool() {
  return std::make_unique<BlurPool>();
}

}  // namespace precast::recipes
