#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/format.h"
#include "framework/core/export.h"

namespace precast::data {

/// What one field's metadata takes of a sample's record.
struct FieldLayout {
  std::size_t bytes = 0;
  /// What its place in the record is a multiple of.
  std::size_t alignment = 1;
  /// Where in it the pointer (u64) to a large value stands; nothing where there is none, or none
  /// that is known.
  std::optional<std::size_t> pointer_at = {};

  bool operator==(const FieldLayout&) const = default;
};

/// Where each field lies in a sample's metadata record.
struct RecordLayout {
  std::vector<std::size_t> offsets;
  /// From one record to the next.
  std::size_t bytes = 0;
};

/// The layout of a type's metadata. @throws std::logic_error for FieldType::custom, whose layout
/// the type does not tell.
[[nodiscard]] PRECAST_API FieldLayout field_layout(FieldType type);

/// numpy's rule for `np.dtype(list, align=True)` (numpy/core/src/multiarray/descriptor.c): numbers
/// are aligned to 8, the packed structs of images, bytes and JSON to 1, and a record's size is a
/// multiple of the largest alignment in it. @throws std::logic_error for FieldType::custom. @{
[[nodiscard]] PRECAST_API RecordLayout record_layout(std::span<const FieldLayout> fields);
[[nodiscard]] PRECAST_API RecordLayout record_layout(std::span<const FieldType> fields);
/// @}

/// True for the types whose metadata always points to bytes in a page.
[[nodiscard]] PRECAST_API bool has_blob(FieldType type);

/// `image`, `int`, `ndarray` ...
[[nodiscard]] PRECAST_API std::string_view field_type_name(FieldType type);

/// The layout of a custom field as a user states it: `BYTES:ALIGNMENT`, as `16:8`, or
/// `BYTES:ALIGNMENT:POINTER`, POINTER being the place in the metadata where the pointer to its
/// large value stands. @param place names the text in messages. @throws ConfigError
[[nodiscard]] PRECAST_API FieldLayout parse_field_layout(std::string_view text,
                                                         std::string_view place);
/// The text of which parse_field_layout() makes this layout.
[[nodiscard]] std::string layout_text(const FieldLayout& layout);

/// Whether numpy could have laid metadata out like that: 1 to 65536 bytes, an alignment of 1, 2, 4,
/// 8 or 16, the pointer inside.
[[nodiscard]] PRECAST_API bool is_possible(const FieldLayout& layout);

}  // namespace precast::data
