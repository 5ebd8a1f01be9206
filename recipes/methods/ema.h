#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Exponential moving average of the weights (Polyak & Juditsky 1992), as
/// torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn and use_buffers=True: the first
/// step copies the weights, each later one computes average = decay * average + (1 - decay) *
/// weight, for parameters and floating-point buffers (running statistics) alike. Integer buffers
/// are not averaged. The averages are swapped in while the model is evaluated.
/// State: `<state name>.ema` and the count of updates; a resumed run is bitwise identical to an
/// uninterrupted one.
/// Options: decay, in [0, 1); default 0.999.
/// Cost: one float for each weight, and one fused read and write of them per step.
[[nodiscard]] std::unique_ptr<Method> make_ema();

}  // namespace precast::recipes
