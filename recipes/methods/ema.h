#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Exponential moving average of the weights (Polyak & Juditsky 1992), like
/// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn and use_buffers=True: the first
/// step copies the weights; each later step computes average = decay * average + (1 - decay) *
/// weight. This applies to parameters and floating-point buffers (running statistics). Integer
/// buffers are not averaged. While the model is evaluated, its tensors contain the averages.
/// State: `<state name>.ema` and the count of updates; a resumed run is bitwise identical to an
/// uninterrupted one.
/// Options: decay, in [0, 1); default 0.999.
/// Cost: memory for one float per weight, and for another one during an evaluation; per step, one
/// pass that reads the weights and updates the averages.
[[nodiscard]] std::unique_ptr<Method> make_ema();

}  // namespace precast::recipes
