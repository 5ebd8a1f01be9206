#pragma once

#include <string>

#include "framework/core/archive/weights_file.h"

namespace precast::tools {

/// Returns a warning if the run that wrote this file evaluated averages of the weights (ema, swa),
/// which the file does not contain, or if the file is a training checkpoint of another program that
/// contains averages besides the weights; otherwise an empty string. The warning says how to use
/// the averages, except for a file of precast's that is not in the folder of a checkpoint.
[[nodiscard]] std::string averages_warning(const WeightsFile& file);

}  // namespace precast::tools
