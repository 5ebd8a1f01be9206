#pragma once

// Internal code that the kernels of batch norms share.

#include "models/cuda/activation.cuh"
#include "models/cuda/batch_norm.h"
#include "models/cuda/batch_norm_tiling.h"

namespace precast::models {
namespace {

/// Channels per block, and threads per channel, in the kernels that combine partial results.
constexpr int kFinishedChannels = 4;
constexpr int kFinishLanes = kThreads / kFinishedChannels;

/// The rows of a thread. Its k-th pack is at index first + k * step of the matrix.
///
/// Most kernels load several rows before they use the first one, because a load takes longer than
/// the arithmetic of a row. The second pass over a tensor goes from the last row of each chunk to
/// the first, because the rows that the first pass read last are still in the L2 cache.
struct ThreadTile {
  int group;
  int line;
  /// Number of rows; 0 for a thread beyond the last channel or the last row.
  int rows;
  std::int64_t first;
  std::int64_t step;
  __device__ explicit ThreadTile(const Tiling& tiling)
      : group(static_cast<int>(blockIdx.x) * tiling.channel_threads +
              static_cast<int>(threadIdx.x) % tiling.channel_threads),
        line(static_cast<int>(threadIdx.x) / tiling.channel_threads) {
    const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * tiling.chunk_rows;
    const std::int64_t left = tiling.rows - first_row;
    const int chunk = left < tiling.chunk_rows ? static_cast<int>(left) : tiling.chunk_rows;
    const bool outside = group >= tiling.groups || line >= chunk;
    rows = outside ? 0 : (chunk - line + tiling.row_threads - 1) / tiling.row_threads;
    first = (first_row + line) * tiling.groups + group;
    step = static_cast<std::int64_t>(tiling.row_threads) * tiling.groups;
  }
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

inline dim3 grid_of(const Tiling& tiling) {
  return {static_cast<unsigned>(blocks_along_channels(tiling)),
          static_cast<unsigned>(tiling.chunks)};
}
inline unsigned finish_blocks(const Tiling& tiling) {
  return static_cast<unsigned>((tiling.channels + kFinishedChannels - 1) / kFinishedChannels);
}

}  // namespace
}  // namespace precast::models
