#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Stochastic weight averaging (Izmailov et al., UAI 2018), like Composer's SWA with
/// torch.optim.swa_utils.AveragedModel: from the fraction `start` of the run on, the arithmetic
/// mean of the weights at the end of every `interval`-th epoch is evaluated and exported. Composer
/// puts the mean into the model at the fraction `swa_end` and continues training, which updates the
/// running statistics; here, training continues as it would without SWA, and running statistics are
/// averaged too (AveragedModel's use_buffers), as in `ema`. Before the first update, the current
/// weights are evaluated. If a finished run continues with more epochs and `start` of the longer
/// run is still ahead, the earlier mean is dropped.
/// State: `<state name>.swa` and the count of updates.
/// Options: start, in [0, 1], default 0.7; interval, epochs, default 1.
/// Cost: memory for one float per weight, and for another one during an evaluation; per averaged
/// epoch, one pass that reads the weights and updates the mean.
[[nodiscard]] std::unique_ptr<Method> make_swa();

}  // namespace precast::recipes
