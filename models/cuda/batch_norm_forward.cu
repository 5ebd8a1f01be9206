#include "models/cuda/batch_norm_tiling.cuh"

namespace precast::models {
namespace {

/// Count, mean and sum of squared deviations of some values.
struct Moments {
  float count;
  float mean;
  float m2;
};

/// Returns the moments of the union of two sets of values (Chan, Golub and LeVeque, 1979).
__device__ __forceinline__ Moments merged(const Moments& a, const Moments& b) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  const float count = a.count + b.count;
  const float delta = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

/// Writes the moments of the chunk's rows for each channel: partial[chunk, channel].
template <typename T, int V>
__global__ PRECAST_BOUNDS(kThreads, 4) void moments_kernel(const T* __restrict__ x, Tiling tiling,
                                                           float2* __restrict__ partial) {
  PRECAST_SHARED(moments, float2[kThreads][V]);
  PRECAST_SHARED(counts, float[kThreads]);
  constexpr int kInFlight = 8;
  const ThreadTile tile(tiling);
  const auto* const packs = reinterpret_cast<const Pack<T, V>*>(x);
  // Differences from the first value are summed, which is accurate even if the mean is far from
  // zero.
  float shift[V] = {}, sum[V] = {}, squares[V] = {};
  for (int k = 0; k < tile.rows; k += kInFlight) {
    Pack<T, V> in[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u)
      if (k + u < tile.rows) in[u] = packs[tile.first + (k + u) * tile.step];
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k + u >= tile.rows) continue;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        const float value = to_float(in[u].values[v]);
        if (k + u == 0) shift[v] = value;
        const float difference = value - shift[v];
        sum[v] += difference;
        squares[v] += difference * difference;
      }
    }
  }
  const auto count = static_cast<float>(tile.rows);
  const float share = tile.rows > 0 ? 1 / count : 0;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    const float mean = sum[v] * share;
    const float m2 = squares[v] - sum[v] * mean;
    moments[threadIdx.x][v] = {shift[v] + mean, m2 > 0 ? m2 : 0};
  }
  counts[threadIdx.x] = count;
  for (int half = tiling.row_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (tile.line < half) {
      const int thread = static_cast<int>(threadIdx.x);
      const int other = thread + half * tiling.channel_threads;
      const float own_count = counts[thread], other_count = counts[other];
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        const Moments both = merged({own_count, moments[thread][v].x, moments[thread][v].y},
                                    {other_count, moments[other][v].x, moments[other][v].y});
        moments[thread][v] = {both.mean, both.m2};
      }
      counts[thread] = own_count + other_count;
    }
  }
  // The remaining threads read only what they wrote themselves, so no barrier is needed.
  if (tile.line != 0 || tile.group >= tiling.groups) return;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    partial[static_cast<std::int64_t>(blockIdx.y) * tiling.channels + tile.group * V + v] =
        moments[threadIdx.x][v];
  }
}

/// Merges the moments of the chunks.
__global__ void finish_moments_kernel(const float2* __restrict__ partial, Tiling tiling,
                                      BatchNormForward call) {
  PRECAST_SHARED(moments, Moments[kThreads]);
  constexpr int kInFlight = 4;
  const int thread = static_cast<int>(threadIdx.x), lane = thread / kFinishedChannels;
  const int channel = static_cast<int>(blockIdx.x) * kFinishedChannels + thread % kFinishedChannels;
  const int chunks = channel < tiling.channels ? tiling.chunks : 0;
  Moments all{0, 0, 0};
  for (int chunk = lane; chunk < chunks; chunk += kInFlight * kFinishLanes) {
    float2 in[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      const std::int64_t from = chunk + u * kFinishLanes;
      if (from < chunks) in[u] = partial[from * tiling.channels + channel];
    }
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      const std::int64_t from = chunk + u * kFinishLanes;
      if (from >= chunks) continue;
      const std::int64_t left = tiling.rows - from * tiling.chunk_rows;
      const auto count = static_cast<float>(left < tiling.chunk_rows ? left : tiling.chunk_rows);
      all = merged(all, {count, in[u].x, in[u].y});
    }
  }
  moments[thread] = all;
  for (int half = kFinishLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half)
      moments[thread] = merged(moments[thread], moments[thread + half * kFinishedChannels]);
  }
  if (lane != 0 || channel >= tiling.channels) return;
  if (channel == 0 && call.num_batches_tracked != nullptr) ++*call.num_batches_tracked;
  all = moments[thread];
  const float rows = static_cast<float>(tiling.rows);
  call.mean[channel] = all.mean;
  call.inv_std[channel] = 1 / sqrtf(all.m2 / rows + call.eps);
  if (call.running_mean == nullptr) return;
  call.running_mean[channel] += call.momentum * (all.mean - call.running_mean[channel]);
  call.running_var[channel] += call.momentum * (all.m2 / (rows - 1) - call.running_var[channel]);
}

/// Minimum number of resident blocks of apply_kernel() per multiprocessor.
template <bool kResidual>
constexpr int kApplyBlocks = kResidual ? 3 : 5;

template <typename T, int V, bool kResidual>
__global__ PRECAST_BOUNDS(kThreads,
                          kApplyBlocks<kResidual>) void apply_kernel(Tiling tiling,
                                                                     BatchNormForward call) {
  constexpr int kInFlight = kResidual ? 2 : 4;
  const ThreadTile tile(tiling);
  if (tile.rows == 0) return;
  const Affine<V> norm(call.mean, call.inv_std, call.weight, call.bias, tile.group * V);
  const auto* const x = static_cast<const Pack<T, V>*>(call.x);
  const auto* const residual = static_cast<const Pack<T, V>*>(call.residual);
  auto* const y = static_cast<Pack<T, V>*>(call.y);
  for (int k = tile.rows - 1; k >= 0; k -= kInFlight) {
    Pack<T, V> in[kInFlight] = {}, added[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      const std::int64_t at = tile.first + (k - u) * tile.step;
      in[u] = x[at];
      if constexpr (kResidual) added[u] = residual[at];
    }
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      const std::int64_t at = tile.first + (k - u) * tile.step;
      Pack<T, V> out;
      unsigned mask = 0;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        float value = norm(v, to_float(in[u].values[v]));
        if constexpr (kResidual) value += to_float(added[u].values[v]);
        // Not fmaxf, which would turn NaN into 0.
        if (call.relu && value <= 0) value = 0;
        round_to(value, out.values[v]);
        // The mask depends on the rounded value, as with separate ops.
        if (rounds_above_0<T>(value)) mask |= 1U << v;
      }
      y[at] = out;
      if constexpr (kResidual)
        if (call.relu) call.mask[at] = static_cast<std::uint8_t>(mask);
    }
  }
}

template <typename T, int V, bool kResidual>
void launch_apply(const BatchNormShape& shape, const BatchNormForward& call, cudaStream_t stream) {
  const Tiling tiling = tiling_of(shape, V, kBlocks / 4 * kApplyBlocks<kResidual>);
  PRECAST_LAUNCH((apply_kernel<T, V, kResidual>), grid_of(tiling), kThreads, 0, stream, tiling,
                 call);
}

}  // namespace

void batch_norm_statistics(const BatchNormShape& shape, const BatchNormForward& call,
                           cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    constexpr int V = half_pack(P);
    const Tiling tiling = tiling_of(shape, V);
    auto* const partial = static_cast<float2*>(call.workspace);
    PRECAST_LAUNCH((moments_kernel<T, V>), grid_of(tiling), kThreads, 0, stream,
                   static_cast<const T*>(call.x), tiling, partial);
    PRECAST_LAUNCH(finish_moments_kernel, finish_blocks(tiling), kThreads, 0, stream, partial,
                   tiling, call);
  });
}

void batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& call,
                        cudaStream_t stream) {
  batch_norm_statistics(shape, call, stream);
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    // With a residual, a thread computes all values of one mask byte.
    if (call.residual != nullptr)
      launch_apply<T, P, true>(shape, call, stream);
    else
      launch_apply<T, half_pack(P), false>(shape, call, stream);
  });
}

}  // namespace precast::models
