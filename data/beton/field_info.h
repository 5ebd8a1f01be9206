#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/beton/field_tag.h"
#include "data/beton/format.h"
#include "data/beton/layout.h"
#include "data/http/remote_file.h"
#include "framework/core/export.h"

namespace precast::data {

/// One field of a .beton file.
struct FieldInfo {
  std::string name;
  FieldType type = FieldType::integer;
  /// The offset of the field's metadata in a sample's record.
  std::size_t offset = 0;
  /// The layout of that metadata.
  FieldLayout layout = {};
  /// The tag of a bytes or custom field, if the field has one.
  FieldTag tag = {};
  /// custom: the kFieldArgumentsBytes bytes of the arguments in its descriptor; else empty.
  std::vector<std::byte> arguments = {};
  /// ndarray and tensor: numpy's type string, such as `<f4`; else empty.
  std::string dtype;
  /// ndarray and tensor: the shape of one sample.
  std::vector<std::uint64_t> shape;
  /// ndarray and tensor: bytes of one sample.
  std::uint64_t value_bytes = 0;

  /// Whether the field's values are in pages and can be located.
  [[nodiscard]] bool has_pointer() const { return layout.pointer_at.has_value(); }
};

/// What a reader must know that is not in the file.
struct BetonOptions {
  /// Layouts of custom fields that another program wrote, by field name.
  std::map<std::string, FieldLayout> layouts = {};
  /// How files on a server are read.
  RemoteOptions remote = {};
};

/// Reads `count` descriptors and computes the offsets. @param location the file's name, for
/// messages.
/// @throws DataError for an unknown type, a bad name, a duplicate name, a bad shape, dtype or tag,
/// and a custom field whose layout is neither in the file nor in `options`; ConfigError for a
/// layout in `options` that differs from the layout in the file, or that is for a field that does
/// not exist or is not custom.
[[nodiscard]] std::vector<FieldInfo> parse_fields(std::span<const std::byte> descriptors,
                                                  std::size_t count, const std::string& location,
                                                  const BetonOptions& options = {});

/// Bytes from the start of one record of these fields to the start of the next.
[[nodiscard]] PRECAST_API std::size_t record_bytes(std::span<const FieldInfo> fields);

}  // namespace precast::data
