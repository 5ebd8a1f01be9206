#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/resample/axis.h"

namespace precast::data {

/// The inner loops of Resizer for pixels in three planes, compiled for each SIMD level and chosen
/// at run time (Highway). They compute the same values as convolve_columns (kernels.h).

/// How the instruction set in use gathers values from a row of sums.
struct PlaneLayout {
  /// Outputs per window.
  std::size_t outputs;
  /// Values per window: 8, which are then selected by byte indices, or more.
  std::size_t values;
  /// Windows per vector.
  std::size_t windows;
};
[[nodiscard]] PlaneLayout plane_layout();

/// Tables for adding up the taps along the columns of a plane. A window is a piece of the row of
/// sums that contains one pair of taps of each of its outputs. The window advances by one pair of
/// taps at a time.
struct PlaneWeights {
  PlaneLayout layout{};
  /// Number of outputs per window that are in use: layout.outputs, or fewer if their taps do not
  /// fit into one window.
  std::size_t used = 0;
  /// Number of windows, which is even.
  std::size_t windows = 0;
  std::size_t pairs = 0;
  /// Whether every window needs only the first half of its values.
  bool narrow = false;
  /// [windows]: the index of the window's first value, for the first pair of taps.
  std::vector<std::int32_t> start;
  /// [windows][layout.outputs]: the indices of the output's pair of taps in the window, as two
  /// 16-bit numbers; if a window has 8 values, as the indices of their four bytes.
  std::vector<std::uint32_t> indices;
  /// [windows / layout.windows][pairs][layout.windows][layout.outputs]: the two weights of a pair
  /// of taps.
  std::vector<std::uint32_t> weights;

  void plan(const WeightedAxis& axis);
  /// The number of values that a row of sums must have for `source` pixels, and the number of bytes
  /// that a row of outputs must have. @{
  [[nodiscard]] std::size_t sums_row_values(int source) const;
  [[nodiscard]] std::size_t bytes_written() const { return windows * used + layout.outputs; }
  /// @}

 private:
  void set_output(std::size_t output, int first, const std::vector<std::uint16_t>& fixed);
};

/// Computes out[c][i] from three rows of sums, the output of convolve_rows.
/// @param sums rows of sums_row_values() values. @param out rows of bytes_written() bytes.
void convolve_plane_columns(const std::int16_t* const* sums, const PlaneWeights& columns,
                            std::uint8_t* const* out);

/// Interleaves three rows of `count` bytes into pixels [count, 3].
void interleave_planes(const std::uint8_t* const* planes, std::size_t count, std::uint8_t* out);

}  // namespace precast::data
