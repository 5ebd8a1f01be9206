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
#include "framework/core/export.h"

namespace precast::data {

/// One field of a .beton file.
struct FieldInfo {
  std::string name;
  FieldType type = FieldType::integer;
  /// Its place in a sample's metadata record.
  std::size_t offset = 0;
  /// What its metadata takes there.
  FieldLayout layout = {};
  /// What a bytes or custom field written by precast is beyond its type.
  FieldTag tag = {};
  /// custom: what stands in its descriptor (kFieldArgumentsBytes); else empty.
  std::vector<std::byte> arguments = {};
  /// ndarray and tensor: numpy's type string, as `<f4`; else empty.
  std::string dtype;
  /// ndarray and tensor: the shape of one sample.
  std::vector<std::uint64_t> shape;
  /// ndarray and tensor: bytes of one sample.
  std::uint64_t value_bytes = 0;

  /// Whether its values lie in pages and it is known where.
  [[nodiscard]] bool has_pointer() const { return layout.pointer_at.has_value(); }
};

/// What a file does not say about itself and a user has to.
struct BetonOptions {
  /// Of custom fields that another program wrote, by name.
  std::map<std::string, FieldLayout> layouts = {};
};

/// Reads `count` descriptors; offsets are filled in. @param place names the file in messages.
/// @throws DataError for an unknown type, a bad name, the same name twice, a bad shape, dtype or
/// tag, and a custom field whose layout neither the file nor `options` tells; ConfigError for
/// options on fields that are not there or not custom.
[[nodiscard]] std::vector<FieldInfo> parse_fields(std::span<const std::byte> descriptors,
                                                  std::size_t count, const std::string& place,
                                                  const BetonOptions& options = {});

/// Bytes from one record of these fields to the next.
[[nodiscard]] PRECAST_API std::size_t record_bytes(std::span<const FieldInfo> fields);

}  // namespace precast::data
