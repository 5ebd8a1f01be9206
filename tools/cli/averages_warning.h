#pragma once

#include <string>

#include "framework/core/archive/weights_file.h"

namespace precast::tools {

/// A warning for a file with weights in place of which a run evaluated averages (ema, swa), with
/// the commands that use the averages if the file is in the folder of a checkpoint; otherwise
/// empty.
[[nodiscard]] std::string averages_warning(const WeightsFile& file);

}  // namespace precast::tools
