#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/archive/tensor_record.h"
#include "framework/core/export.h"
#include "framework/core/file.h"

namespace precast {

/// The header of a `.npy` file. The elements that follow are in C order.
struct NpyHeader {
  /// NumPy's type string, such as `<f4`.
  std::string descr;
  std::vector<std::int64_t> shape;
  /// Offset of the elements in the file, in bytes.
  std::size_t begin = 0;
};

/// Parses the header of a `.npy` file. @param file the beginning of the file, with at least the
/// complete header. @throws DataError for a damaged header, format versions other than 1.0 to 3.0,
/// Fortran order, and structured element types.
[[nodiscard]] PRECAST_API NpyHeader parse_npy_header(std::span<const std::byte> file,
                                                     const std::string& source);

/// An array of a `.npy` file: C order, little-endian, any DType except bf16.
struct NpyArray {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Writes format version 1.0, atomically. @throws IoError
PRECAST_API void write_npy(const std::filesystem::path& path, DType dtype,
                           std::span<const std::int64_t> shape, std::span<const std::byte> bytes,
                           FileOps& ops = posix_file_ops());

/// Like write_npy() above, for elements of any type. @param descr NumPy's type string, such as
/// `<u2`.
PRECAST_API void write_npy(const std::filesystem::path& path, std::string_view descr,
                           std::span<const std::int64_t> shape, std::span<const std::byte> bytes,
                           FileOps& ops = posix_file_ops());

/// The header that write_npy() writes, for a file whose elements the caller appends in parts.
[[nodiscard]] PRECAST_API std::string npy_header(std::string_view descr,
                                                 std::span<const std::int64_t> shape);

/// Reads a file. @throws IoError; DataError if it is damaged or does not have format version 1.0 to
/// 3.0, C order and an element type of DType.
[[nodiscard]] PRECAST_API NpyArray read_npy(const std::filesystem::path& path);
/// Like read_npy(), for the bytes of a file. @param source names the file in messages. @throws
/// DataError
[[nodiscard]] PRECAST_API NpyArray parse_npy(std::span<const std::byte> file,
                                             const std::string& source);

}  // namespace precast
