#include "recipes/methods/channels_last.h"

#include "framework/api/train_plan.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class ChannelsLast final : public MethodWithoutGradientHooks {
 public:
  void configure(TrainPlan& plan) const override { plan.channels_last = true; }
};

}  // namespace

std::unique_ptr<Method> make_channels_last() {
  return std::make_unique<ChannelsLast>();
}

}  // namespace precast::recipes
