#pragma once

// Code shared by kernels in which each block reads a row of logits. For .cu files only.

#include "framework/core/cuda_values.cuh"
#include "recipes/cuda/logits.h"

namespace precast::recipes {

constexpr int kMaxRowThreads = 512;
constexpr int kMaxRowWarps = kMaxRowThreads / 32;

/// Number of threads per block, for one row: a power of two that depends only on the shape, so that
/// sums have the same order on every GPU.
inline unsigned row_threads(const LogitsShape& shape) {
  const int packs = shape.classes / pack_of(shape.type, shape.classes);
  int threads = 32;
  while (threads < kMaxRowThreads && threads < packs) threads *= 2;
  return static_cast<unsigned>(threads);
}

struct Sum {
  template <typename Value>
  __device__ __forceinline__ Value operator()(Value a, Value b) const {
    return a + b;
  }
};
/// The larger value; if one of the two is NaN, the other value.
struct Largest {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Combines the values of all threads of the block and returns the result in every thread. The
/// order depends only on the number of threads. `warp_values` is shared memory that no other call
/// uses.
/// @pre all threads of the block call this function; the block consists of complete warps
template <typename Value, typename Combine>
__device__ Value block_reduce(Value value, Combine combine, Value (&warp_values)[kMaxRowWarps]) {
  for (int offset = warpSize / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(~0U, value, offset));
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % warpSize == 0) warp_values[thread / warpSize] = value;
  __syncthreads();
  value = warp_values[0];
  const int warps = static_cast<int>(blockDim.x) / warpSize;
  for (int warp = 1; warp < warps; ++warp) value = combine(value, warp_values[warp]);
  return value;
}

}  // namespace precast::recipes
