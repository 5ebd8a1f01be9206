#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Stores images and weights in the channels-last layout, as the key training.channels_last
/// (default true) does. Tensor cores and oneDNN compute convolutions in this layout, so no tensor
/// is converted between layers. Results differ from those of the contiguous layout only by
/// rounding.
/// Options: none.
[[nodiscard]] std::unique_ptr<Method> make_channels_last();

}  // namespace precast::recipes
