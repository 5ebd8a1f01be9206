#include "recipes/methods/squeeze_excite.h"

#include <fmt/format.h>

#include "recipes/methods/model_params.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class SqueezeExcite final : public MethodWithoutGradientHooks {
 public:
  void options(Schema& schema) override {
    schema
        .add("latent_channels", &latent_channels_,
             "channels of the hidden layer; below 1: a fraction of the convolution's output "
             "channels")
        .above(0);
    schema
        .add("min_channels", &min_channels_,
             "minimum number of input and output channels; convolutions with fewer are unchanged")
        .min(1);
  }
  void configure(TrainPlan& plan) const override {
    set_model_params(plan, "squeeze_excite", "squeeze_excite",
                     {{"latent_channels", fmt::format("{}", latent_channels_)},
                      {"min_channels", fmt::format("{}", min_channels_)}});
  }

 private:
  double latent_channels_ = 64;
  std::int64_t min_channels_ = 128;
};

}  // namespace

std::unique_ptr<Method> make_squeeze_excite() {
  return std::make_unique<SqueezeExcite>();
}

}  // namespace precast::recipes
