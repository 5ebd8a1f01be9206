#pragma once

// What the kernels of batch_norm_forward.cu and batch_norm_backward.cu share. Internal to each of
// them; include it after cuda_fp16.h and cuda_bf16.h.

#include "framework/core/cuda_kernel.h"
#include "models/cuda/batch_norm.h"

namespace precast::models {
namespace {

constexpr int kThreads = 256;
/// Threads side by side along the channels.
constexpr int kMostLanes = 32;
/// Channels per block of the kernels that combine partial results; a warp for each.
constexpr int kFinishedChannels = kThreads / 32;

__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ __forceinline__ void round_to(float value, float& out) {
  out = value;
}
__device__ __forceinline__ void round_to(float value, __half& out) {
  out = __float2half_rn(value);
}
__device__ __forceinline__ void round_to(float value, __nv_bfloat16& out) {
  out = __float2bfloat16_rn(value);
}

/// What a thread reads and writes at a time: 16 bytes, or one value if the channels do not divide.
template <typename T, int V>
struct alignas(V * sizeof(T)) Pack {
  T values[V];
};

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

/// The place of a thread in the matrix.
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

template <typename T>
constexpr int kPack = 16 / sizeof(T);

/// Calls run(T{}, constant V) for the shape's type and the widest pack that divides its channels.
template <typename Run>
void for_pack(const BatchNormShape& shape, Run run) {
  const auto of_type = [&]<typename T>(T type) {
    if (shape.channels % kPack<T> == 0) return run.template operator()<T, kPack<T>>(type);
    run.template operator()<T, 1>(type);
  };
  switch (shape.type) {
    case ActivationType::f32:
      return of_type(float{});
    case ActivationType::f16:
      return of_type(__half{});
    case ActivationType::bf16:
      return of_type(__nv_bfloat16{});
  }
}

int pack_of(const BatchNormShape& shape) {
  const int pack = shape.type == ActivationType::f32 ? kPack<float> : kPack<__half>;
  return shape.channels % pack == 0 ? pack : 1;
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
