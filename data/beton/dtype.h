#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// What the values of an ndarray or tensor field are: numpy's element type and the shape of one
/// sample's array.
struct ArrayFormat {
  /// numpy's type string, as `<f4`.
  std::string dtype;
  std::vector<std::uint64_t> shape;

  bool operator==(const ArrayFormat&) const = default;
};

/// Bytes of one element of a numpy type string such as `<f4`; 0 for one we do not know.
[[nodiscard]] PRECAST_API std::uint64_t dtype_bytes(std::string_view dtype);

/// `[3, 5] of <f4`.
[[nodiscard]] PRECAST_API std::string describe(const ArrayFormat& format);

/// Bytes of one array. @throws DataError behind `place` for an unknown element type, no dimension,
/// more than 32, one of length 0, or more than a page can hold.
[[nodiscard]] PRECAST_API std::uint64_t array_bytes(const ArrayFormat& format,
                                                    const std::string& place);

/// The arguments of a field descriptor (kFieldArgumentsBytes), and back. @throws DataError behind
/// `place` for what array_bytes() refuses or what is no description of a plain type. @{
[[nodiscard]] PRECAST_API std::vector<std::byte> array_arguments(const ArrayFormat& format,
                                                                 const std::string& place);
[[nodiscard]] PRECAST_API ArrayFormat parse_array_arguments(const std::byte* arguments,
                                                            const std::string& place);
/// @}

}  // namespace precast::data
