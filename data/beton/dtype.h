#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Describes the values of an ndarray or tensor field: numpy's element type and the shape of one
/// sample's array.
struct ArrayFormat {
  /// numpy's type string, such as `<f4`.
  std::string dtype;
  std::vector<std::uint64_t> shape;

  bool operator==(const ArrayFormat&) const = default;
};

/// Size in bytes of one element of a numpy type, given as a type string such as `<f4`; 0 if the
/// type is unknown.
[[nodiscard]] PRECAST_API std::uint64_t dtype_bytes(std::string_view dtype);

/// Returns the format as text, such as `[3, 5] of <f4`.
[[nodiscard]] PRECAST_API std::string describe(const ArrayFormat& format);

/// Bytes of one array. @throws DataError prefixed with `location` for an unknown element type, no
/// dimensions, more than 32 dimensions, a dimension of length 0, or more than kMaxPageBytes bytes.
[[nodiscard]] PRECAST_API std::uint64_t array_bytes(const ArrayFormat& format,
                                                    const std::string& location);

/// Convert to and from the arguments of a field descriptor, which have kFieldArgumentsBytes bytes.
/// @throws DataError prefixed with `location`: array_arguments() for formats that array_bytes()
/// rejects, parse_array_arguments() for a description that is not a plain type and for an empty
/// shape. @{
[[nodiscard]] PRECAST_API std::vector<std::byte> array_arguments(const ArrayFormat& format,
                                                                 const std::string& location);
[[nodiscard]] PRECAST_API ArrayFormat parse_array_arguments(const std::byte* arguments,
                                                            const std::string& location);
/// @}

}  // namespace precast::data
