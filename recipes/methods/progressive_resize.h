#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Progressive resizing: small images first, large ones last (Howard, DAWNBench 2018; in
/// ffcv-imagenet's form, get_resolution). Images have min_res up to epoch `start_ramp` and max_res
/// from `end_ramp` on (if both are the same epoch, it has min_res); in between, the size grows
/// linearly, rounded to multiples of 32 px, half to even. As in get_resolution, a rounded size can
/// be smaller than min_res or larger than max_res if these are not multiples of 32; unlike in
/// get_resolution, a size that would be rounded to 0 is replaced by min_res. Fills the plan's image
/// sizes.
/// Options: min_res, max_res (px; default 160), start_ramp, end_ramp (epochs; default 0).
/// configure() throws ConfigError for min_res > max_res or start_ramp > end_ramp.
/// Cost: none; saves time, because a step with images of 160 px takes about (160 / 192)^2 of the
/// time of a step with images of 192 px. Decoding a JPEG takes the same time for both sizes.
[[nodiscard]] std::unique_ptr<Method> make_progressive_resize();

}  // namespace precast::recipes
