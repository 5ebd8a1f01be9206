#pragma once

// Code shared by the kernels of batch_norm_forward.cu and batch_norm_backward.cu, and internal to
// both.

#include "models/cuda/activation.cuh"
#include "models/cuda/batch_norm.h"

namespace precast::models {
namespace {

/// Threads side by side along the channels.
constexpr int kMostLanes = 32;
/// Channels per block of the kernels that combine partial results; a warp for each.
constexpr int kFinishedChannels = kThreads / 32;

/// How threads and blocks share the matrix. Depends on the shape only, so that sums have the same
/// order on every GPU.
struct Tiling {
  std::int64_t rows;
  int channels;
  /// Packs per row.
  int groups;
  /// Threads along the channels and along the rows; powers of two.
  int lanes;
  int lines;
  /// Rows of a block.
  int chunk_rows;
  int chunks;
};

int blocks_along_channels(const Tiling& tiling) {
  return (tiling.groups + tiling.lanes - 1) / tiling.lanes;
}

Tiling tiling_of(const BatchNormShape& shape, int pack) {
  // Enough blocks for the largest GPUs, few enough that combining their results takes no time.
  constexpr std::int64_t kBlocks = 1024;
  Tiling tiling{};
  tiling.rows = shape.rows;
  tiling.channels = shape.channels;
  tiling.groups = shape.channels / pack;
  tiling.lanes = 1;
  while (tiling.lanes < kMostLanes && 2 * tiling.lanes <= tiling.groups) tiling.lanes *= 2;
  tiling.lines = kThreads / tiling.lanes;
  const std::int64_t chunks =
      (kBlocks + blocks_along_channels(tiling) - 1) / blocks_along_channels(tiling);
  std::int64_t rows = (shape.rows + chunks - 1) / chunks;
  // Each thread has several rows, so that the sums within a block cost little.
  const std::int64_t least = std::int64_t{4} * tiling.lines;
  if (rows < least) rows = least;
  tiling.chunk_rows = static_cast<int>(rows);
  tiling.chunks = static_cast<int>((shape.rows + rows - 1) / rows);
  return tiling;
}

/// The position of a thread in the matrix.
struct Place {
  int group;
  int line;
  std::int64_t first_row;
  std::int64_t end_row;
  __device__ explicit Place(const Tiling& tiling)
      : group(static_cast<int>(blockIdx.x) * tiling.lanes +
              static_cast<int>(threadIdx.x) % tiling.lanes),
        line(static_cast<int>(threadIdx.x) / tiling.lanes),
        first_row(static_cast<std::int64_t>(blockIdx.y) * tiling.chunk_rows),
        end_row(first_row + tiling.chunk_rows < tiling.rows ? first_row + tiling.chunk_rows
                                                            : tiling.rows) {}
};

/// The norm as y = scale * x + offset, for the channels of one thread.
template <int V>
struct Affine {
  float scale[V];
  float offset[V];
  __device__ Affine(const float* mean, const float* inv_std, const float* weight, const float* bias,
                    int first) {
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      scale[v] = weight[first + v] * inv_std[first + v];
      offset[v] = bias[first + v] - mean[first + v] * scale[v];
    }
  }
  [[nodiscard]] __device__ float operator()(int v, float x) const {
    return scale[v] * x + offset[v];
  }
};

std::size_t activation_bytes(const BatchNormShape& shape) {
  return static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.channels) *
         bytes_of(shape.type);
}

dim3 grid_of(const Tiling& tiling) {
  return {static_cast<unsigned>(blocks_along_channels(tiling)),
          static_cast<unsigned>(tiling.chunks)};
}
unsigned finish_blocks(const Tiling& tiling) {
  return static_cast<unsigned>((tiling.channels + kFinishedChannels - 1) / kFinishedChannels);
}

}  // namespace
}  // namespace precast::models
