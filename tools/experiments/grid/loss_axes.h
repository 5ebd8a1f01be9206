#pragma once

#include <string>
#include <vector>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Returns a warning for each figure (`val_loss`, `train_loss`) by which trials are ranked or
/// stopped early although axes with several values change how it is computed: the loss function,
/// its options, label smoothing and, for `val_loss`, flip TTA. Such figures of different trials are
/// not comparable. The warning names these axes and the location of the first one.
[[nodiscard]] std::vector<std::string> incomparable_losses(const Sweep& sweep);

}  // namespace precast::tools
