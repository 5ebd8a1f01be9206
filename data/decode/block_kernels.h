#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "data/decode/lane_kernels.h"
#include "data/decode/scan_kernels.h"
#include "framework/core/export.h"

namespace precast::data {

/// One component's quantisation table in natural order (scale_quantizers()).
struct alignas(64) BlockQuantizers {
  std::array<std::int16_t, 64> values{};
};

/// Blocks of one component that are adjacent in the image, from left to right.
struct BlockRow {
  /// The block at index i is first[i / columns * mcu_blocks + i % columns].
  LaneBlock* first = nullptr;
  std::size_t count = 0;
  /// Number of this row's blocks in an MCU (1 or 2), and of all blocks in an MCU.
  std::size_t columns = 1, mcu_blocks = 1;
  const BlockQuantizers* quantizers = nullptr;
  /// [8][stride]
  std::uint8_t* samples = nullptr;
  std::size_t stride = 0;
};

/// Bytes that transform_blocks() may write after each row of samples.
inline constexpr std::size_t kBlockRowSlack = 32;

/// Transforms coefficients into the same samples as decode_mcus(), and clears the coefficients.
PRECAST_API void transform_blocks(const BlockRow& row, JpegDct dct);

}  // namespace precast::data
