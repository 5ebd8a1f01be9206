#pragma once

// Internal code that the kernels of batch_norm_backward.cu and dual_norm.cu share.

#include "models/cuda/batch_norm_tiling.cuh"

namespace precast::models {
namespace {

/// How the gradient of y passes through the ReLU.
enum class Gate {
  /// There is no ReLU.
  open,
  /// The ReLU's output is computed again from x.
  recompute,
  /// The forward pass wrote a mask, because a residual was added before the ReLU.
  mask
};

/// Reads the gradient of y and computes the gradient of the ReLU's input. Template parameters
/// select the arrays to read, because branches between loads would keep a thread from loading
/// several rows at once.
/// @tparam P number of values per mask byte
/// @tparam kFork whether there is a second gradient of y
template <typename T, int P, Gate kGate, bool kFork>
struct GradientReader {
  static constexpr int V = half_pack(P);
  /// What a thread loads for one row.
  struct Row {
    Pack<T, V> x, dy, fork;
    unsigned bits;
  };
  const Pack<T, V>* x;
  const Pack<T, V>* dy;
  const Pack<T, V>* fork;
  const std::uint8_t* mask;
  __device__ explicit GradientReader(const BatchNormBackward& call)
      : x(static_cast<const Pack<T, V>*>(call.x)),
        dy(static_cast<const Pack<T, V>*>(call.dy)),
        fork(static_cast<const Pack<T, V>*>(call.dy_fork)),
        mask(call.mask) {}
  __device__ void load(std::int64_t at, Row& row) const {
    row.x = x[at];
    row.dy = dy[at];
    if constexpr (kFork) row.fork = fork[at];
    if constexpr (kGate == Gate::mask) {
      const std::uint64_t value = static_cast<std::uint64_t>(at) * V;
      row.bits = mask[value / P] >> value % P;
    }
  }
  /// @pre kGate is not Gate::recompute
  __device__ float gradient(const Row& row, int v) const {
    float sum = to_float(row.dy.values[v]);
    if constexpr (kFork) sum += to_float(row.fork.values[v]);
    if constexpr (kGate == Gate::mask) return (row.bits >> v & 1U) != 0 ? sum : 0;
    return sum;
  }
  __device__ float gradient(const Row& row, int v, const Affine<V>& norm) const {
    const float sum = gradient(row, v);
    if constexpr (kGate == Gate::recompute)
      return rounds_above_0<T>(norm(v, to_float(row.x.values[v]))) ? sum : 0;
    return sum;
  }
};

/// Adds up the sums of the block's threads for each channel, and writes the totals to
/// partial[chunk, channel]. Every thread of the block must call it. A kernel that calls it twice
/// needs a barrier between the calls.
template <int V>
__device__ __forceinline__ void store_sums(const Tiling& tiling, const ThreadTile& tile,
                                           const float (&sum_dy)[V], const float (&sum_dy_xhat)[V],
                                           float2* __restrict__ partial) {
  PRECAST_SHARED(sums, float2[kThreads][V]);
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) sums[threadIdx.x][v] = {sum_dy[v], sum_dy_xhat[v]};
  for (int half = tiling.row_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (tile.line < half) {
      const int thread = static_cast<int>(threadIdx.x);
      const int other = thread + half * tiling.channel_threads;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        sums[thread][v].x += sums[other][v].x;
        sums[thread][v].y += sums[other][v].y;
      }
    }
  }
  if (tile.line != 0 || tile.group >= tiling.groups) return;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    partial[static_cast<std::int64_t>(blockIdx.y) * tiling.channels + tile.group * V + v] =
        sums[threadIdx.x][v];
  }
}

}  // namespace

/// Adds the partial sums in call.workspace, and writes d_bias and d_weight.
void launch_finish_sums(const Tiling& tiling, const BatchNormBackward& call, cudaStream_t stream);

}  // namespace precast::models
