#pragma once

#include <vector>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Adds the keys of the command line to the fixed ones of `set`, which they replace, and to
/// `sweep.overrides`. The last of several values of a key is used.
void add_overrides(const std::vector<Override>& overrides, Sweep& sweep,
                   std::vector<SweepAxis>& fixed);

}  // namespace precast::tools
