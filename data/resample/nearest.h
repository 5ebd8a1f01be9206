#pragma once

#include "data/image/image.h"
#include "data/image/pixels.h"
#include "framework/core/export.h"

namespace precast::data {

/// Resizes `in` to the shape of `out`. Each pixel is a copy of the source pixel with the nearest
/// centre, as in Pillow's NEAREST and torch's nearest-exact. For masks, whose values must not be
/// mixed.
/// @param in   its pixels have out.shape.channels values. @param flip mirrors left to right.
PRECAST_API void resize_nearest(const ImageView& in, bool flip, const Pixels& out);

}  // namespace precast::data
