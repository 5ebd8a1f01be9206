#include "recipes/register.h"

#include "recipes/losses/cross_entropy.h"
#include "recipes/methods/blurpool.h"
#include "recipes/methods/channels_last.h"
#include "recipes/methods/ema.h"
#include "recipes/methods/gradient_clipping.h"
#include "recipes/methods/label_smoothing.h"
#include "recipes/methods/progressive_resize.h"
#include "recipes/optim/sgd.h"
#include "recipes/schedules/cyclic.h"
#include "recipes/schedules/step.h"

namespace precast::recipes {

void register_methods(MethodRegistry& registry) {
  registry.add("blurpool", "antialias strided convolutions (Zhang 2019)", make_blurpool);
  registry.add("label_smoothing", "spread some probability over all classes (Szegedy et al. 2016)",
               make_label_smoothing);
  registry.add("progressive_resize", "train on small images first (Howard 2018, FFCV)",
               make_progressive_resize);
  registry.add("channels_last", "store images and weights channels last", make_channels_last);
  registry.add("gradient_clipping", "bound the norm of the gradient (Pascanu et al. 2013)",
               make_gradient_clipping);
  registry.add("ema", "evaluate an average of the weights (Polyak & Juditsky 1992)", make_ema);
}

void register_losses(LossRegistry& registry) {
  registry.add("cross_entropy", "mean cross entropy, of class indices or probabilities",
               make_cross_entropy);
}

void register_optimizers(OptimizerRegistry& registry) {
  registry.add("sgd", "stochastic gradient descent with momentum", make_sgd);
}

void register_schedules(ScheduleRegistry& registry) {
  registry.add("cyclic", "linear up to the peak, linear down to 0", make_cyclic);
  registry.add("step", "multiplied by step_ratio every step_length epochs", make_step);
}

}  // namespace precast::recipes
