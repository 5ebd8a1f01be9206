#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "framework/core/export.h"

namespace precast::data {

/// A Huffman table as it is stored in a JPEG's DHT segment (ITU T.81, B.2.4.2): the number of codes
/// of each length 1..16, then the symbols in the order of their codes. Borrows the file's bytes.
struct HuffmanSpec {
  std::span<const std::uint8_t> counts;
  std::span<const std::uint8_t> symbols;
};

/// The contents of the header of a JPEG of the common kind: 8-bit baseline, grey or YCbCr, in one
/// scan, without restart markers. Borrows the file's bytes.
struct BaselineHeader {
  struct Component {
    /// In natural order (row by row).
    std::array<std::uint8_t, 64> quantizers{};
    HuffmanSpec dc;
    HuffmanSpec ac;
  };
  int height = 0;
  int width = 0;
  /// 1: grey. 3: Y, Cb, Cr; one sample of Cb and of Cr covers luma_columns x luma_rows samples of
  /// Y.
  int components = 0;
  int luma_columns = 1;
  int luma_rows = 1;
  std::array<Component, 3> component;
  /// Where the entropy-coded bytes begin.
  std::size_t scan_begin = 0;
};

/// JPEG's zigzag order: the natural index of the k-th coefficient.
inline constexpr std::array<std::uint8_t, 64> kZigzag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/// Reads the markers up to the image data. Returns nothing for JPEGs that BaselineHeader cannot
/// describe (progressive, 12 bits, CMYK, RGB, restart markers, sampling other than 4:4:4, 4:2:2 and
/// 4:2:0), for images with a side below 8 px, which libjpeg may upsample differently, and for
/// irregular files: libjpeg has to decode or reject these files.
[[nodiscard]] PRECAST_API std::optional<BaselineHeader> parse_baseline_header(
    std::span<const std::byte> jpeg);

}  // namespace precast::data
