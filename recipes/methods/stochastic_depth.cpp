#include "recipes/methods/stochastic_depth.h"

#include <fmt/format.h>

#include "recipes/methods/model_params.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class StochasticDepth final : public MethodWithoutGradientHooks {
 public:
  void options(Schema& schema) override {
    schema
        .add("drop_rate", &drop_rate_,
             "drop probability of the last residual branch (uniform: of every branch)")
        .min(0)
        .below(1);
    schema
        .add("mode", &mode_,
             "block: drop a branch for the whole batch; sample: for each sample separately")
        .choices({"block", "sample"});
    schema
        .add("distribution", &distribution_,
             "drop rate of block i = 1 ... n. linear: drop_rate * i / n; uniform: drop_rate")
        .choices({"linear", "uniform"});
  }
  void configure(TrainPlan& plan) const override {
    set_model_params(plan, "stochastic_depth", "stochastic_depth",
                     {{"drop_rate", fmt::format("{}", drop_rate_)},
                      {"mode", mode_},
                      {"distribution", distribution_}});
  }

 private:
  double drop_rate_ = 0.2;
  std::string mode_ = "block";
  std::string distribution_ = "linear";
};

}  // namespace

std::unique_ptr<Method> make_stochastic_depth() {
  return std::make_unique<StochasticDepth>();
}

}  // namespace precast::recipes
