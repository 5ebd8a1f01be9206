#include "recipes/methods/ghost_batch_norm.h"

#include "framework/api/train_plan.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class GhostBatchNorm final : public MethodWithoutGradientHooks {
 public:
  void options(Schema& schema) override {
    schema.add("size", &size_, "number of samples whose statistics are computed together").min(1);
  }
  void configure(TrainPlan& plan) const override { plan.model.ghost_batch_size = size_; }

 private:
  std::int64_t size_ = 32;
};

}  // namespace

std::unique_ptr<Method> make_ghost_batch_norm() {
  return std::make_unique<GhostBatchNorm>();
}

}  // namespace precast::recipes
