#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/beton/format.h"

namespace precast::data {

/// One field of a .beton file.
struct FieldInfo {
  std::string name;
  FieldType type = FieldType::integer;
  /// Its place in a sample's metadata record.
  std::size_t offset = 0;
  /// ndarray and tensor: numpy's type string, as `<f4`; else empty.
  std::string dtype;
  /// ndarray and tensor: the shape of one sample.
  std::vector<std::uint64_t> shape;
  /// ndarray and tensor: bytes of one sample.
  std::uint64_t value_bytes = 0;
};

/// Reads `count` descriptors; offsets are filled in. @param place names the file in messages.
/// @throws DataError for an unknown or custom type, a bad name, the same name twice, a bad shape or
/// dtype.
[[nodiscard]] std::vector<FieldInfo> parse_fields(std::span<const std::byte> descriptors,
                                                  std::size_t count, const std::string& place);

}  // namespace precast::data
