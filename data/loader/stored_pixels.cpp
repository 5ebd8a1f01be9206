#include "data/loader/stored_pixels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "framework/core/error.h"

namespace precast::data {
namespace {

bool is_array(const FieldInfo& field) {
  return field.type == FieldType::ndarray || field.type == FieldType::tensor;
}

}  // namespace

bool holds_pixels(const FieldInfo& field) {
  if (field.tag.kind == FieldTag::Kind::pixels)
    return field.tag.dtype == "|u1" || field.tag.dtype == "<u2";
  const std::size_t dimensions = field.shape.size();
  const bool image = dimensions == 2 || (dimensions == 3 && field.shape[2] <= 4);
  return is_array(field) && field.dtype == "|u1" && image &&
         std::ranges::none_of(field.shape, [](auto side) { return side == 0; });
}

StoredPixels stored_pixels(const FieldInfo& field, std::span<const std::byte> value,
                           std::vector<std::uint64_t>& extents) {
  require(holds_pixels(field), "the field's values are images");
  int bytes_per_value = 1;
  if (is_array(field)) {
    extents.assign(field.shape.begin(), field.shape.end());
    if (extents.size() == 2) extents.push_back(1);
  } else {
    value = shaped_elements(field.tag, value, extents);
    bytes_per_value = field.tag.dtype == "<u2" ? 2 : 1;
  }
  constexpr std::uint64_t kMaxPx = std::numeric_limits<std::int32_t>::max();
  if (extents[0] > kMaxPx || extents[1] > kMaxPx)
    throw DataError(fmt::format("expected an image with sides of at most {} px, got {} x {}",
                                kMaxPx, extents[1], extents[0]));
  return {.values = value.data(),
          .height = static_cast<int>(extents[0]),
          .width = static_cast<int>(extents[1]),
          .channels = static_cast<int>(extents[2]),
          .bytes_per_value = bytes_per_value};
}

ImageView rgb_of(const StoredPixels& pixels, const Rect& region,
                 std::vector<std::uint8_t>& memory) {
  const auto* const values = reinterpret_cast<const std::uint8_t*>(pixels.values);
  const std::ptrdiff_t size = pixels.bytes_per_value;
  const std::ptrdiff_t step = pixels.channels * size;
  const std::ptrdiff_t stride = pixels.width * step;
  const std::uint8_t* from = values + region.row * stride + region.column * step;
  if (step == 3) return {from, region.height, region.width, stride};
  const auto width = static_cast<std::size_t>(region.width);
  memory.resize(3 * width * static_cast<std::size_t>(region.height));
  // Values are little-endian, so the upper byte is the last one.
  const std::ptrdiff_t green = pixels.channels < 3 ? 0 : size;
  std::uint8_t* to = memory.data();
  for (int y = 0; y < region.height; ++y, from += stride) {
    const std::uint8_t* pixel = from + size - 1;
    for (std::size_t x = 0; x < width; ++x, pixel += step, to += 3) {
      to[0] = pixel[0];
      to[1] = pixel[green];
      to[2] = pixel[2 * green];
    }
  }
  return {memory.data(), region.height, region.width, std::ptrdiff_t{3} * region.width};
}

}  // namespace precast::data
