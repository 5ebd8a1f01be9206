#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "framework/core/export.h"

struct png_struct_def;
struct png_info_def;

namespace precast::data {

/// The form in which libpng returns a file's rows. Values of fewer than 8 bits are scaled to
/// 0..255, palette indices are replaced by their colours, and colours declared transparent become
/// an alpha channel.
enum class PngLayout {
  /// 3 channels of 8 bits: grey repeated, alpha dropped, the upper 8 of 16 bits.
  rgb8,
  /// As in the file: 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha) channels of 8 or 16
  /// bits (little-endian).
  as_stored,
};

/// Reads a PNG file in memory with libpng. The constructor and read() throw DataError for a damaged
/// or truncated file. Not thread-safe; use one per thread. The file's bytes must outlive it.
class PRECAST_API PngReader {
 public:
  /// Reads everything before the pixels.
  PngReader(std::span<const std::byte> file, PngLayout layout);
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader();

  [[nodiscard]] std::uint64_t height() const;
  [[nodiscard]] std::uint64_t width() const;
  /// Properties of the rows that read() writes. sixteen_bit(): whether each value has 16 bits;
  /// otherwise it has 8. @{
  [[nodiscard]] std::uint64_t channels() const;
  [[nodiscard]] bool sixteen_bit() const;
  [[nodiscard]] std::size_t row_bytes() const;
  /// @}

  /// Properties of the file. @{
  [[nodiscard]] bool stored_grey() const { return stored_grey_; }
  [[nodiscard]] bool stored_alpha() const { return stored_alpha_; }
  [[nodiscard]] bool stored_sixteen_bit() const { return stored_sixteen_bit_; }
  /// @}

  /// Reads the pixels. @param pixels height() rows of row_bytes(), without gaps.
  void read(std::span<std::byte> pixels);

  /// The EXIF block; empty if there is none. The block may follow the pixels, so call this after
  /// read().
  [[nodiscard]] std::span<const std::byte> exif() const;

 private:
  /// The bytes that libpng has not read yet, and its error message.
  struct Input {
    std::span<const std::byte> left;
    char error_text[256] = {};
  };
  struct Callbacks;

  bool read_header(PngLayout layout);
  bool read_rows(unsigned char** rows);

  Input input_;
  png_struct_def* png_ = nullptr;
  png_info_def* info_ = nullptr;
  bool stored_grey_ = false;
  bool stored_alpha_ = false;
  bool stored_sixteen_bit_ = false;
};

}  // namespace precast::data
