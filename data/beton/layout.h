#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/format.h"
#include "framework/core/export.h"

namespace precast::data {

/// The layout of one field's metadata in a sample's record.
struct FieldLayout {
  std::size_t bytes = 0;
  /// The metadata's offset in the record is a multiple of this.
  std::size_t alignment = 1;
  /// Offset, within the metadata, of the pointer (u64) to a large value. Empty if there is no
  /// pointer or its offset is unknown.
  std::optional<std::size_t> pointer_at = {};

  bool operator==(const FieldLayout&) const = default;
};

/// The position of each field in a sample's metadata record.
struct RecordLayout {
  std::vector<std::size_t> offsets;
  /// Bytes from the start of one record to the start of the next.
  std::size_t bytes = 0;
};

/// The layout of a type's metadata. @throws std::logic_error for FieldType::custom, whose layout
/// does not follow from the type.
[[nodiscard]] PRECAST_API FieldLayout field_layout(FieldType type);

/// Computes the layout with numpy's rule for `np.dtype(list, align=True)`
/// (numpy/core/src/multiarray/descriptor.c): numbers, and the pointers of ndarrays and tensors, are
/// aligned to 8 bytes, the packed structs of images, bytes and JSON to 1, and a record's size is a
/// multiple of its largest alignment. @throws std::logic_error for FieldType::custom. @{
[[nodiscard]] PRECAST_API RecordLayout record_layout(std::span<const FieldLayout> fields);
[[nodiscard]] PRECAST_API RecordLayout record_layout(std::span<const FieldType> fields);
/// @}

/// Whether the metadata of all fields of this type contains a pointer; false for custom.
[[nodiscard]] PRECAST_API bool has_blob(FieldType type);

/// `image`, `int`, `ndarray` ...
[[nodiscard]] PRECAST_API std::string_view field_type_name(FieldType type);

/// Parses the layout of a custom field as a user writes it: `BYTES:ALIGNMENT`, such as `16:8`, or
/// `BYTES:ALIGNMENT:POINTER`, where POINTER is the offset, within the metadata, of the pointer to
/// the large value. @param location says in messages where the text comes from. @throws ConfigError
/// for any other text.
[[nodiscard]] PRECAST_API FieldLayout parse_field_layout(std::string_view text,
                                                         std::string_view location);
/// Parses `NAME=LAYOUT` and adds the layout to `layouts`. @param location the option or key, for
/// messages.
/// @throws ConfigError for any other text, and for a name that already has a layout.
PRECAST_API void add_field_layout(std::string_view text, std::string_view location,
                                  std::map<std::string, FieldLayout>& layouts);
/// Formats a layout as text that parse_field_layout() accepts.
[[nodiscard]] std::string layout_text(const FieldLayout& layout);

/// Whether the layout has 1 to 65536 bytes, an alignment of 1, 2, 4, 8 or 16, and its pointer, if
/// there is one, inside the metadata.
[[nodiscard]] PRECAST_API bool is_valid(const FieldLayout& layout);

}  // namespace precast::data
