#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/beton/layout.h"
#include "framework/core/export.h"

namespace precast::data {

/// Where in a descriptor's arguments a tag stands: behind all that FFCV looks at in bytes fields.
inline constexpr std::size_t kTagAt = 768;
inline constexpr std::size_t kTagBytes = kFieldArgumentsBytes - kTagAt;

/// What precast adds to a field that FFCV has no type for: FFCV reads such a field as bytes (or as
/// a custom one), and ignores this. data/FORMAT.md has its bytes.
struct FieldTag {
  enum class Kind {
    none,
    /// A bytes field; each value is an image [height, width, channels] of its own size.
    pixels,
    /// A bytes field; each value is an array of its own shape.
    ragged,
    /// A custom field; the tag tells its layout.
    custom,
  };
  Kind kind = Kind::none;
  /// pixels, ragged: numpy's type string, as `<u2`.
  std::string dtype = {};
  /// pixels: 1 to 4.
  std::size_t channels = 0;
  /// ragged: 1 to 32.
  std::size_t dims = 0;
  /// custom.
  FieldLayout layout = {};

  bool operator==(const FieldTag&) const = default;
};

/// `pixels`, `ragged`, `custom`; empty for none.
[[nodiscard]] PRECAST_API std::string_view tag_kind_name(FieldTag::Kind kind);

/// Puts the tag into a descriptor's arguments, which are made kFieldArgumentsBytes long.
/// @throws ConfigError for a tag that check_tag() refuses.
PRECAST_API void put_tag(const FieldTag& tag, std::vector<std::byte>& arguments);

/// The tag in a descriptor's arguments (kFieldArgumentsBytes); Kind::none where there is no tag, or
/// one of a kind that this version does not know. @throws DataError behind `place` for one that is
/// damaged.
[[nodiscard]] PRECAST_API FieldTag parse_tag(const std::byte* arguments, const std::string& place);

/// The elements, in C order, of one value of a pixels or ragged field.
/// @param blob    as it is stored; checked.
/// @param extents becomes [height, width, channels], or the shape of a ragged array.
/// @throws DataError if blob and extents do not agree.
[[nodiscard]] PRECAST_API std::span<const std::byte> shaped_elements(
    const FieldTag& tag, std::span<const std::byte> blob, std::vector<std::uint64_t>& extents);

/// The other way round. @param blob overwritten. @throws DataError if an image has no pixel or a
/// side above 2^32 - 1.
PRECAST_API void store_shaped(const FieldTag& tag, std::span<const std::uint64_t> extents,
                              std::span<const std::byte> elements, std::vector<std::byte>& blob);

}  // namespace precast::data
