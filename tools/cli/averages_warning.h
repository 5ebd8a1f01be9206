#pragma once

#include <string>

#include "framework/core/archive/weights_file.h"

namespace precast::tools {

/// Returns a warning if the run that wrote this file evaluated averages of the weights (ema, swa),
/// which the file does not contain; otherwise an empty string. If the file is in the folder of a
/// checkpoint, the warning gives the commands that use the averages.
[[nodiscard]] std::string averages_warning(const WeightsFile& file);

}  // namespace precast::tools
