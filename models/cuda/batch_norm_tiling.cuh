#pragma once

// Internal code that the kernels of batch_norm_forward.cu and batch_norm_backward.cu share.

#include "models/cuda/activation.cuh"
#include "models/cuda/batch_norm.h"
#include "models/cuda/batch_norm_tiling.h"

namespace precast::models {
namespace {

/// Channels per block in the kernels that combine partial results, with one warp per channel.
constexpr int kFinishedChannels = kThreads / 32;

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

dim3 grid_of(const Tiling& tiling) {
  return {static_cast<unsigned>(blocks_along_channels(tiling)),
          static_cast<unsigned>(tiling.chunks)};
}
unsigned finish_blocks(const Tiling& tiling) {
  return static_cast<unsigned>((tiling.channels + kFinishedChannels - 1) / kFinishedChannels);
}

}  // namespace
}  // namespace precast::models
