#pragma once

#include <vector>

#include "tools/experiments/grid/sweep.h"

namespace precast::tools {

/// Adds the keys of the command line to `sweep.overrides` and to `fixed`, the keys of `set`. A key
/// of the command line replaces the same key of `set`; if it is given several times, its last value
/// is used.
void add_overrides(const std::vector<Override>& overrides, Sweep& sweep,
                   std::vector<SweepAxis>& fixed);

}  // namespace precast::tools
