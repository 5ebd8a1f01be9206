#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace precast::data {

/// The inner loops of Resizer, compiled for each SIMD level and chosen at run time (Highway). They
/// use integers only, so results are equal on every level.

// ---- Two taps: columns first, then rows, as OpenCV rounds them.

/// An aligned piece of a row of 16-bit values, so that no vector crosses a cache line.
struct alignas(64) Words32 {
  std::int16_t value[32];
};

/// Tables that compute a row's outputs from pairs of neighbouring source pixels, in groups of 16
/// values. A group has four quarters of four values, in the order 0-3, 8-11, 4-7, 12-15, so that
/// instructions which work on 128-bit blocks pack them in order.
struct ColumnBlend {
  /// Number of bytes of a window.
  static constexpr int kWindow = 16;

  struct alignas(64) Group {
    static constexpr std::size_t kValues = 16;
    /// For each value the two bytes in the window, as 16-bit words (the upper byte is 0x80:
    /// nothing).
    std::uint32_t shuffle[kValues];
    /// For each value the two weights of 11 bits.
    std::uint32_t weight[kValues];
    /// For each quarter, where in the row its window begins.
    std::int32_t window[4];
  };

  /// 32 values from one window, as value = 128 nearer + (fraction * (farther - nearer) >> 4), which
  /// equals the sum where weights add up to kBlendOne.
  struct alignas(64) Line {
    static constexpr std::size_t kValues = 32;
    static constexpr int kWindow = 64;
    /// For each value the bytes of the farther and of the nearer pixel in the window.
    std::uint8_t places[2 * kValues];
    /// Minus 32 times the farther pixel's weight, at most 1024.
    std::int16_t fraction[kValues];
    /// Offset in the row, in bytes, at which the window begins.
    std::int32_t window;
  };

  /// An output: the first bytes of its pixels in the row, and Line::fraction.
  struct Lerp {
    int nearer, farther;
    std::int16_t fraction;
  };

  std::vector<Group> groups;
  /// Whether quarters 0 and 2 share a window, and quarters 1 and 3.
  bool wide_windows = false;
  /// If not empty, used in place of groups.
  std::vector<Line> lines;
  /// The values from which lines are made.
  std::vector<Lerp> lerps;

  [[nodiscard]] std::size_t values() const {
    return lines.empty() ? groups.size() * Group::kValues : lines.size() * Line::kValues;
  }
};

/// Whether blend_columns is faster with ColumnBlend::lines on this CPU.
[[nodiscard]] bool blends_lines();

/// out[v] = (first * row[..] + second * row[..]) >> 4 for all values of all groups, or
/// lines.
void blend_columns(const std::uint8_t* row, const ColumnBlend& columns, std::int16_t* out);

/// The number of values in a row of blend_rows is a multiple of this.
inline constexpr std::size_t kRowMultiple = 32;

/// out[i] = ((first * upper[i] >> 16) + (second * lower[i] >> 16) + 2) >> 2 for i < count, a
/// multiple of kRowMultiple.
void blend_rows(const std::int16_t* upper, const std::int16_t* lower, int first, int second,
                std::size_t count, std::uint8_t* out);

/// Copies complete cache lines with non-temporal stores. @param out aligned to a line.
void stream_lines(const std::byte* in, std::size_t lines, std::byte* out);
inline constexpr std::size_t kCacheLine = 64;

// ---- Many taps: rows first, then columns.

/// Fractional bits of the weights of rows, and of the output of weigh_rows.
inline constexpr int kRowWeightBits = 15;
inline constexpr int kSumBits = 7;
inline constexpr int kColumnWeightBits = 14;

/// out[i] = start + sum over t of (weights[t] * rows[t][i] >> 8), for i < count: values times 128.
void weigh_rows(const std::uint8_t* const* rows, const std::uint16_t* weights, int taps, int start,
                std::size_t count, std::int16_t* out);

/// Tables that add up the taps of 8 output pixels at a time.
struct ColumnWeights {
  static constexpr std::size_t kGroup = 8;

  /// The two weights of a pair of taps, repeated four times: [pixel % 4][pixel / 4][4].
  struct alignas(64) Pair {
    std::uint32_t weight[4 * kGroup];
  };

  std::size_t groups = 0;
  /// Two taps are added at a time.
  std::size_t pairs = 0;
  /// For each pixel, the first of its values in the row of sums.
  std::vector<std::int32_t> start;
  /// [groups][pairs]
  std::vector<Pair> weights;
};

/// Reads 16 bytes for each pair and writes 4 bytes past the last group.
void weigh_columns(const std::int16_t* sums, const ColumnWeights& columns, std::uint8_t* out);

}  // namespace precast::data
