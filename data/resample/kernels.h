#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace precast::data {

/// The inner loops of Resizer, compiled for each SIMD level and chosen at run time (Highway). They
/// use only integers, so the results are the same on every level.

// ---- Two taps: columns first, then rows, with OpenCV's rounding.

/// A piece of a row of 16-bit values, aligned so that no vector crosses a cache line.
struct alignas(64) RowChunk {
  std::int16_t value[32];
};

/// Tables for computing a row's outputs from pairs of neighbouring source pixels, in groups of 16
/// values. A group has four quarters of four values, in the order 0-3, 8-11, 4-7, 12-15, so that
/// instructions on 128-bit blocks pack the values in order.
struct ColumnBlend {
  /// Size of a window, in bytes.
  static constexpr int kWindow = 16;

  struct alignas(64) Group {
    static constexpr std::size_t kValues = 16;
    /// For each value, the indices of its two bytes in the window, as 16-bit words. The upper byte
    /// of each word is 0x80, which selects zero.
    std::uint32_t shuffle[kValues];
    /// For each value, its two weights, with 11 fractional bits.
    std::uint32_t weight[kValues];
    /// For each quarter, the offset in the row, in bytes, at which its window begins.
    std::int32_t window[4];
  };

  /// 32 values from one window, computed as value = 128 * nearer + (w * (farther - nearer) >> 4),
  /// where w is the farther pixel's weight. This equals the weighted sum if the weights add up to
  /// kBlendOne.
  struct alignas(64) Line {
    static constexpr std::size_t kValues = 32;
    static constexpr int kWindow = 64;
    /// For each value, the indices of the farther and of the nearer pixel's byte in the window.
    std::uint8_t indices[2 * kValues];
    /// -32 times the farther pixel's weight, which is at most 1024.
    std::int16_t fraction[kValues];
    /// Offset in the row, in bytes, at which the window begins.
    std::int32_t window;
  };

  /// For one output: the offsets in the row, in bytes, of its two pixels, and Line::fraction. The
  /// nearer pixel is the one with the larger weight.
  struct Lerp {
    int nearer, farther;
    std::int16_t fraction;
  };

  std::vector<Group> groups;
  /// Whether quarters 0 and 2 share a window, and quarters 1 and 3 share another.
  bool wide_windows = false;
  /// If not empty, used instead of groups.
  std::vector<Line> lines;
  /// Intermediate results from which `lines` is computed.
  std::vector<Lerp> lerps;

  [[nodiscard]] std::size_t values() const {
    return lines.empty() ? groups.size() * Group::kValues : lines.size() * Line::kValues;
  }
};

/// Whether blend_columns is faster with ColumnBlend::lines on this CPU.
[[nodiscard]] bool prefers_lines();

/// Computes out[v] = (first * row[..] + second * row[..]) >> 4 for all values of all groups or
/// lines.
void blend_columns(const std::uint8_t* row, const ColumnBlend& columns, std::int16_t* out);

/// blend_rows computes a multiple of this number of values.
inline constexpr std::size_t kRowMultiple = 32;

/// Computes out[i] = ((first * upper[i] >> 16) + (second * lower[i] >> 16) + 2) >> 2 for i < count.
/// @param count a multiple of kRowMultiple.
void blend_rows(const std::int16_t* upper, const std::int16_t* lower, int first, int second,
                std::size_t count, std::uint8_t* out);

/// Copies complete cache lines with non-temporal stores. @param out aligned to a line.
void stream_lines(const std::byte* in, std::size_t lines, std::byte* out);
inline constexpr std::size_t kCacheLine = 64;

// ---- Many taps: rows first, then columns.

/// Fractional bits of row weights, of the output of convolve_rows, and of column weights.
inline constexpr int kRowWeightBits = 15;
inline constexpr int kSumBits = 7;
inline constexpr int kColumnWeightBits = 14;

/// Computes out[i] = start + sum over t of (weights[t] * rows[t][i] >> 8), for i < count: the
/// weighted averages times 128.
void convolve_rows(const std::uint8_t* const* rows, const std::uint16_t* weights, int taps,
                   int start, std::size_t count, std::int16_t* out);

/// Tables for adding up the taps of 8 output pixels at a time.
struct ColumnWeights {
  static constexpr std::size_t kGroup = 8;

  /// For each of the 8 pixels, the two 16-bit weights of a pair of taps (the first in the lower
  /// half), repeated four times: [pixel % 4][pixel / 4][4].
  struct alignas(64) Pair {
    std::uint32_t weight[4 * kGroup];
  };

  std::size_t groups = 0;
  /// Number of pairs of taps per pixel: two taps are added at a time.
  std::size_t pairs = 0;
  /// For each output pixel, the index of its first value in the row of sums.
  std::vector<std::int32_t> start;
  /// [groups][pairs]
  std::vector<Pair> weights;
};

/// Computes the output pixels from a row of sums, the output of convolve_rows. Reads 16 bytes for
/// each pair of taps, and writes 4 bytes past the last group.
void convolve_columns(const std::int16_t* sums, const ColumnWeights& columns, std::uint8_t* out);

}  // namespace precast::data
