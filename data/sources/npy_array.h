#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "data/write/sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// A view of the array in a .npy file.
struct NpyView {
  ArrayFormat format;
  /// In C order.
  std::span<const std::byte> elements;
};

/// Parses the header of a .npy file, and returns a view of its array. The shape may contain zeros;
/// for a single number it is empty.
/// @param where names the file in messages. @throws DataError for elements other than bytes and
/// plain little-endian numbers of NumPy's sizes (objects, strings and records are errors), for
/// Fortran order, and for truncated files.
[[nodiscard]] NpyView view_npy(std::span<const std::byte> file, const std::string& where);

/// Returns the array of a .npy file in the form of an ndarray field; a single number becomes an
/// array of shape [1].
/// @throws the errors of view_npy()
[[nodiscard]] PRECAST_API ArrayInput npy_array(std::span<const std::byte> file,
                                               const std::string& where);

}  // namespace precast::data
