#pragma once

#include <cstddef>
#include <cstdint>

#include "data/transforms/pixel_edit.h"
#include "framework/core/host_device.h"

namespace precast::data {

/// How one image of a batch is computed from its stored pixels: crop, resize, flip, and changes
/// that move or fill pixels. If a GPU holds the stored pixels, the loader writes plans in place of
/// pixels (LoaderOptions::plan_images), and a kernel computes the images from the plans
/// (data/torch/cuda/planned_images.h). The images are bitwise equal to those of SampleDecoder. All
/// members have the same size on the host and on a GPU.
///
/// A plan is followed by the tables of the resize to `side` x `side` px:
///
///     start of columns  int32 [side]                 first source column, in the crop
///     start of rows     int32 [side]
///     column weights    uint16 [side, column_taps]
///     row weights       uint16 [side, row_taps]
///     rounding          uint16 [side]                added to the weighted sum of each row
///
/// With `two_taps`, start and start + 1 may lie outside the crop; the nearest pixel is then used.
/// The arithmetic is that of blend_columns() and blend_rows() with `two_taps`, otherwise that of
/// convolve_rows() and convolve_columns() (data/resample/kernels.h).
struct ImagePlan {
  static constexpr int kMaxEdits = 4;

  std::uint64_t sample = 0;
  /// The crop, in the stored image. @{
  std::int32_t row = 0;
  std::int32_t column = 0;
  std::int32_t height = 0;
  std::int32_t width = 0;
  /// @}
  std::int32_t side = 0;
  std::int32_t two_taps = 0;
  std::int32_t column_taps = 0;
  std::int32_t row_taps = 0;
  /// The number of changes after the resize.
  std::int32_t edits = 0;
  std::int32_t unused = 0;
  /// The changes, in the order in which they are applied.
  PixelEdit edit[kMaxEdits] = {};
};

/// The longest side, in px, of stored images that the kernel accepts: a thread block stores one row
/// of weighted sums, 6 bytes per pixel, in shared memory, of which every GPU has 48 KiB.
inline constexpr int kMaxPlannedWidth = 8192;

/// The offsets of the tables from the start of a plan, in bytes.
struct ImagePlanTables {
  std::size_t start_of_columns, start_of_rows, column_weights, row_weights, rounding, end;
};
[[nodiscard]] PRECAST_HOST_DEVICE constexpr ImagePlanTables tables_of_plan(std::size_t side,
                                                                           std::size_t column_taps,
                                                                           std::size_t row_taps) {
  constexpr std::size_t kStart = sizeof(std::int32_t);
  constexpr std::size_t kWeight = sizeof(std::uint16_t);
  ImagePlanTables tables{};
  tables.start_of_columns = sizeof(ImagePlan);
  tables.start_of_rows = tables.start_of_columns + side * kStart;
  tables.column_weights = tables.start_of_rows + side * kStart;
  tables.row_weights = tables.column_weights + side * column_taps * kWeight;
  tables.rounding = tables.row_weights + side * row_taps * kWeight;
  tables.end = tables.rounding + side * kWeight;
  return tables;
}

}  // namespace precast::data
