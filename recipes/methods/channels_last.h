#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Stores images and weights in the channels-last layout. Tensor cores and oneDNN compute
/// convolutions in this layout, so no tensor is converted between layers. Results differ from those
/// of the default layout only by rounding.
/// Options: none.
[[nodiscard]] std::unique_ptr<Method> make_channels_last();

}  // namespace precast::recipes
