#pragma once

#include "data/image/image.h"
#include "data/image/pixels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Brings `in` to the shape of `out`, each pixel being the nearest one by their centres, as
/// Pillow's NEAREST and torch's nearest-exact have it: for masks, whose values must not be mixed.
/// @param in   its pixels have out.shape.channels values. @param flip mirrors left to right.
PRECAST_API void resize_nearest(const ImageView& in, bool flip, const Pixels& out);

}  // namespace precast::data
