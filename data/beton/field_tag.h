#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/beton/layout.h"
#include "framework/core/export.h"

namespace precast::data {

/// Offset of the tag in a descriptor's arguments, which FFCV ignores in bytes fields.
inline constexpr std::size_t kTagAt = 768;
inline constexpr std::size_t kTagBytes = kFieldArgumentsBytes - kTagAt;

/// Describes a field of a type that FFCV does not have. FFCV reads it as a bytes field (or as a
/// custom field) and ignores the tag. data/FORMAT.md describes the layout of the tag.
struct FieldTag {
  enum class Kind {
    none,
    /// A bytes field; each value is an image [height, width, channels] with its own size.
    pixels,
    /// A bytes field; each value is an array with its own shape.
    ragged,
    /// A custom field; the tag contains its layout.
    custom,
  };
  Kind kind = Kind::none;
  /// pixels, ragged: numpy's type string, such as `<u2`.
  std::string dtype = {};
  /// pixels: 1 to 4.
  std::size_t channels = 0;
  /// ragged: 1 to 32.
  std::size_t dims = 0;
  /// custom: the layout of the metadata.
  FieldLayout layout = {};

  bool operator==(const FieldTag&) const = default;
};

/// `pixels`, `ragged`, `custom`; empty for none.
[[nodiscard]] PRECAST_API std::string_view tag_kind_name(FieldTag::Kind kind);

/// Writes the tag into a descriptor's arguments, which are resized to kFieldArgumentsBytes. @throws
/// ConfigError for a tag with an invalid layout, dtype or number of channels or dimensions.
PRECAST_API void put_tag(const FieldTag& tag, std::vector<std::byte>& arguments);

/// Reads the tag from a descriptor's arguments, which have kFieldArgumentsBytes bytes. Returns a
/// tag of Kind::none if there is no tag or if its kind is unknown. @throws DataError prefixed with
/// `location` for a damaged tag.
[[nodiscard]] PRECAST_API FieldTag parse_tag(const std::byte* arguments,
                                             const std::string& location);

/// Returns the elements, in C order, of one value of a pixels or ragged field.
/// @param blob the stored bytes; they are checked.
/// @param extents is set to [height, width, channels], or to the shape of a ragged array.
/// @throws DataError if the blob's size does not fit its extents, or if an image has no pixels.
[[nodiscard]] PRECAST_API std::span<const std::byte> shaped_elements(
    const FieldTag& tag, std::span<const std::byte> blob, std::vector<std::uint64_t>& extents);

/// The inverse of shaped_elements(). @param blob is overwritten with the bytes to store. @throws
/// DataError if an image has no pixels or a side above 2^32 - 1.
PRECAST_API void store_shaped(const FieldTag& tag, std::span<const std::uint64_t> extents,
                              std::span<const std::byte> elements, std::vector<std::byte>& blob);

}  // namespace precast::data
