#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "data/beton/format.h"
#include "framework/core/export.h"

namespace precast::data {

/// Where each field lies in a sample's metadata record.
struct RecordLayout {
  std::vector<std::size_t> offsets;
  /// From one record to the next.
  std::size_t bytes = 0;
};

/// numpy's rule for `np.dtype(list, align=True)` (numpy/core/src/multiarray/descriptor.c): numbers
/// are aligned to 8, the packed structs of images, bytes and JSON to 1, and a record's size is a
/// multiple of the largest alignment in it. @throws std::logic_error for FieldType::custom, whose
/// size is not in the file.
[[nodiscard]] PRECAST_API RecordLayout record_layout(std::span<const FieldType> fields);

/// True for the types whose metadata points to bytes in a page.
[[nodiscard]] PRECAST_API bool has_blob(FieldType type);

/// `image`, `int`, `ndarray` ...
[[nodiscard]] PRECAST_API std::string_view field_type_name(FieldType type);

}  // namespace precast::data
