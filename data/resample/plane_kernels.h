#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/resample/axis.h"

namespace precast::data {

/// The inner loops of Resizer for pixels in three planes, compiled for each SIMD level and chosen
/// at run time (Highway). Per value they compute what weigh_columns (kernels.h) computes.

/// How the instruction set in use gathers values from a row of sums.
struct PlaneLayout {
  /// Outputs of a window.
  std::size_t outputs;
  /// Values of a window: 8, selected by the indices of their bytes, or more.
  std::size_t values;
  /// Windows of a vector.
  std::size_t windows;
};
[[nodiscard]] PlaneLayout plane_layout();

/// Tables that add up the taps along the columns of a plane. A window is a piece of the row of sums
/// that holds a pair of taps of each of its outputs; it advances by one pair of taps at a time.
struct PlaneWeights {
  PlaneLayout layout{};
  /// Number of a window's outputs in use: all, or as many as the window reaches.
  std::size_t used = 0;
  /// Even.
  std::size_t windows = 0;
  std::size_t pairs = 0;
  /// Whether every window needs only the first half of its values.
  bool narrow = false;
  /// [windows]: the first value of the first pair.
  std::vector<std::int32_t> start;
  /// [windows][layout.outputs]: a pair's indices in the window, as two 16-bit numbers; in windows
  /// of 16 bytes, as the indices of four bytes.
  std::vector<std::uint32_t> places;
  /// [windows / layout.windows][pairs][layout.windows][layout.outputs]: two weights.
  std::vector<std::uint32_t> weights;

  void plan(const WeightedAxis& axis);
  /// Values that a row of sums needs for `source` pixels, and bytes that a row of outputs does. @{
  [[nodiscard]] std::size_t sums_read(int source) const;
  [[nodiscard]] std::size_t bytes_written() const { return windows * used + layout.outputs; }
  /// @}

 private:
  void set_output(std::size_t output, int first, const std::vector<std::uint16_t>& fixed);
};

/// out[c][i] of three rows of sums, as weigh_rows makes them.
/// @param sums rows of sums_read() values. @param out rows of bytes_written().
void weigh_plane_columns(const std::int16_t* const* sums, const PlaneWeights& columns,
                         std::uint8_t* const* out);

/// Three rows of `count` bytes to pixels: [count, 3].
void interleave_planes(const std::uint8_t* const* planes, std::size_t count, std::uint8_t* out);

}  // namespace precast::data
