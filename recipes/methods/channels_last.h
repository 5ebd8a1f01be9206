#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Channels-last layout of images and weights: the layout in which tensor cores and oneDNN compute
/// convolutions, so that no tensor is converted between layers. Results differ from those of the
/// default layout only by rounding.
/// Options: none.
[[nodiscard]] std::unique_ptr<Method> make_channels_last();

}  // namespace precast::recipes
