#include "recipes/methods/channels_last.h"

#include "framework/api/train_plan.h"

namespace precast::recipes {
namespace {

class ChannelsLast final : public Method {
 public:
  void configure(TrainPlan& plan) const override { plan.channels_last = true; }
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }
};

}  // namespace

std::unique_ptr<Method> make_channels_last() {
  return std::make_unique<ChannelsLast>();
}

}  // namespace precast::recipes
