#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "data/loader/image_plan.h"
#include "data/torch/cuda/normalize.h"

namespace precast::data {

/// The pixels of all stored images of a field, in device memory: RGB, without gaps between rows.
struct StoredImages {
  const std::uint8_t* pixels = nullptr;
  /// One per sample: the offset of the first pixel, in bytes.
  const std::uint64_t* offsets = nullptr;
  /// One per sample: the width, in px.
  const std::int32_t* widths = nullptr;
  /// The largest width, in px; at most kMaxPlannedWidth.
  int max_width = 0;
};

/// The images of one batch.
struct PlannedImages {
  /// [count, plan_bytes] in device memory, aligned to 16 bytes: for each image, an ImagePlan and
  /// its tables.
  const std::byte* plans = nullptr;
  std::size_t plan_bytes = 0;
  int count = 0;
  /// The side of the images in px, the same in all plans.
  int side = 0;
  /// The maximum number of images in one launch. The default is the number of blocks that a grid
  /// may have in its second dimension.
  int per_launch = 65535;
};

/// Bytes of GPU memory that make_planned_images() reads and writes for one image, if it reads every
/// pixel of the crop. With two taps on an axis that shrinks, some pixels are not read.
[[nodiscard]] constexpr std::size_t planned_image_bytes(const ImagePlan& plan, PixelType type) {
  const auto side = static_cast<std::size_t>(plan.side);
  const std::size_t crop =
      static_cast<std::size_t>(plan.height) * static_cast<std::size_t>(plan.width);
  const std::size_t tables = tables_of_plan(side, static_cast<std::size_t>(plan.column_taps),
                                            static_cast<std::size_t>(plan.row_taps))
                                 .end;
  return tables + 3 * crop + 3 * side * side * (type == PixelType::f32 ? sizeof(float) : 2);
}

/// Computes images from stored pixels, and normalises them as normalize() does. The CPU reference
/// is SampleDecoder: float32 results are bitwise equal to its results; results of other types are
/// these, rounded to nearest even. Asynchronous on `stream`. Reads, for each image, its crop and
/// its plan (about 6 kB at 224 px), and writes 3 * side * side values; rows of the crop that
/// several output rows need are read again, mostly from the L2 cache.
/// @param out [count, side, side, 3] of type `type`, device memory.
void make_planned_images(const StoredImages& stored, const PlannedImages& batch,
                         const NormalizeConstants& constants, PixelType type, void* out,
                         cudaStream_t stream);

}  // namespace precast::data
