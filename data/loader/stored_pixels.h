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
/// [H, W] or [H, W, C]. Borrows the value.
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

/// Returns the image that is one value of a field for which holds_pixels() is true.
/// @param extents scratch memory. @throws DataError if the value is damaged or a side is longer
/// than 2^31 - 1 px.
[[nodiscard]] PRECAST_API StoredPixels stored_pixels(const FieldInfo& field,
                                                     std::span<const std::byte> value,
                                                     std::vector<std::uint64_t>& extents);

/// Converts a region to RGB, as `precast write` converts such an image for an image field: grey is
/// repeated, alpha is dropped, and the upper 8 of 16 bits are used.
/// @param region inside the image. @param memory overwritten with the result; unused if the pixels
/// are RGB of u8, because the result is then a view of them.
/// @return the pixels; valid as long as both the field value that `pixels` borrows and `memory`
/// exist and are unchanged.
[[nodiscard]] PRECAST_API ImageView rgb_of(const StoredPixels& pixels, const Rect& region,
                                           std::vector<std::uint8_t>& memory);

}  // namespace precast::data
