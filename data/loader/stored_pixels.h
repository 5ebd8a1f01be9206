#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/beton/field_info.h"
#include "data/image/image.h"
#include "framework/core/export.h"

namespace precast::data {

/// An image that is stored as an array: a value of a pixels field, or of an ndarray or tensor field
/// [H, W] or [H, W, C]. Borrowed.
struct StoredPixels {
  /// [height, width, channels], little-endian.
  const std::byte* values = nullptr;
  int height = 0;
  int width = 0;
  /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha.
  int channels = 3;
  /// 1 or 2.
  int bytes_per_value = 1;
};

/// Whether image pipelines can work on the field's values: pixels of u8 or u16, and arrays of u8
/// with shape [H, W] or [H, W, 1 to 4].
[[nodiscard]] PRECAST_API bool holds_pixels(const FieldInfo& field);

/// The image in one value of a field for which holds_pixels() is true.
/// @param extents scratch memory. @throws DataError if the value is damaged or a side exceeds 2^31.
[[nodiscard]] PRECAST_API StoredPixels stored_pixels(const FieldInfo& field,
                                                     std::span<const std::byte> value,
                                                     std::vector<std::uint64_t>& extents);

/// A region as RGB, converted as `precast write` converts such an image for an image field: grey
/// repeated, alpha dropped, the upper 8 of 16 bits.
/// @param region inside the image. @param memory overwritten, unless the pixels are RGB of u8 and
/// the result is a view of them.
/// @return the pixels, valid as long as the value and the memory.
[[nodiscard]] PRECAST_API ImageView rgb_of(const StoredPixels& pixels, const Rect& region,
                                           std::vector<std::uint8_t>& memory);

}  // namespace precast::data
