#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/activation.h"

// How the kernels of batch norms divide their matrix between threads and blocks. Internal to the
// .cu files and bytes_moved.h. Includes no header of CUDA or libtorch.

namespace precast::models {

struct BatchNormShape {
  /// N * H * W; at least 2 for statistics
  std::int64_t rows = 0;
  int channels = 0;
  ActivationType type = ActivationType::f32;
};

[[nodiscard]] inline std::size_t activation_bytes(const BatchNormShape& shape) {
  return static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.channels) *
         bytes_of(shape.type);
}

/// How the matrix is divided between threads and blocks. This depends only on the shape, so that
/// sums have the same order on every GPU.
struct Tiling {
  std::int64_t rows;
  int channels;
  /// Packs per row.
  int groups;
  /// Threads along the channels and along the rows; powers of two.
  int channel_threads;
  int row_threads;
  /// Rows per block.
  int chunk_rows;
  int chunks;
};

[[nodiscard]] inline int blocks_along_channels(const Tiling& tiling) {
  return (tiling.groups + tiling.channel_threads - 1) / tiling.channel_threads;
}

/// Approximate number of blocks per launch. Four blocks fit on a multiprocessor, so all 132
/// multiprocessors of an H100 are full, and no partial wave follows. The results of so few blocks
/// are also combined quickly.
constexpr int kBlocks = 4 * 132;

/// @param pack values per thread and row; it divides the number of channels
/// @param blocks the approximate number of blocks
[[nodiscard]] inline Tiling tiling_of(const BatchNormShape& shape, int pack, int blocks = kBlocks) {
  /// Maximum number of threads along the channels.
  constexpr int kMaxChannelThreads = 32;
  Tiling tiling{};
  tiling.rows = shape.rows;
  tiling.channels = shape.channels;
  tiling.groups = shape.channels / pack;
  tiling.channel_threads = 1;
  while (tiling.channel_threads < kMaxChannelThreads && 2 * tiling.channel_threads <= tiling.groups)
    tiling.channel_threads *= 2;
  tiling.row_threads = kThreads / tiling.channel_threads;
  const std::int64_t chunks =
      (blocks + blocks_along_channels(tiling) - 1) / blocks_along_channels(tiling);
  std::int64_t rows = (shape.rows + chunks - 1) / chunks;
  // Each thread has at least eight rows, so that the sums within a block take little time.
  const std::int64_t min_rows = std::int64_t{8} * tiling.row_threads;
  if (rows < min_rows) rows = min_rows;
  tiling.chunk_rows = static_cast<int>(rows);
  tiling.chunks = static_cast<int>((shape.rows + rows - 1) / rows);
  return tiling;
}

}  // namespace precast::models
