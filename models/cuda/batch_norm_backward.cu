#include "models/cuda/batch_norm_gradient.cuh"

namespace precast::models {
namespace {

/// Sums the gradient of the ReLU's input, and this gradient times the normalised x, over the
/// chunk's rows. If there is a residual, also writes the gradient, which is the residual's
/// gradient; gradient_kernel() then reads it instead of dy, dy_fork and the mask.
template <typename T, int P, Gate kGate, bool kFork>
__global__ PRECAST_BOUNDS(kThreads, 4) void gradient_sums_kernel(Tiling tiling,
                                                                 BatchNormBackward call,
                                                                 float2* __restrict__ partial) {
  using Reader = GradientReader<T, P, kGate, kFork>;
  constexpr int V = Reader::V, kInFlight = kFork ? 2 : 3;
  const ThreadTile tile(tiling);
  float sum_dy[V] = {}, sum_dy_xhat[V] = {};
  if (tile.rows > 0) {
    const Reader reader(call);
    const Affine<V> norm(call.mean, call.inv_std, call.weight, call.bias, tile.group * V);
    auto* const d_residual = static_cast<Pack<T, V>*>(call.d_residual);
    const bool has_residual = kGate == Gate::mask || (kGate == Gate::open && d_residual != nullptr);
    float mean[V];
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) mean[v] = call.mean[tile.group * V + v];
    for (int k = 0; k < tile.rows; k += kInFlight) {
      typename Reader::Row rows[kInFlight] = {};
      PRECAST_UNROLL
      for (int u = 0; u < kInFlight; ++u)
        if (k + u < tile.rows) reader.load(tile.first + (k + u) * tile.step, rows[u]);
      PRECAST_UNROLL
      for (int u = 0; u < kInFlight; ++u) {
        if (k + u >= tile.rows) continue;
        Pack<T, V> passed{};
        PRECAST_UNROLL
        for (int v = 0; v < V; ++v) {
          float gradient = reader.gradient(rows[u], v, norm);
          if (has_residual) {
            round_to(gradient, passed.values[v]);
            gradient = to_float(passed.values[v]);
          }
          sum_dy[v] += gradient;
          sum_dy_xhat[v] += gradient * (to_float(rows[u].x.values[v]) - mean[v]);
        }
        if (has_residual) d_residual[tile.first + (k + u) * tile.step] = passed;
      }
    }
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) sum_dy_xhat[v] *= call.inv_std[tile.group * V + v];
  }
  store_sums(tiling, tile, sum_dy, sum_dy_xhat, partial);
}

/// Adds the sums of the chunks.
__global__ void finish_sums_kernel(const float2* __restrict__ partial, Tiling tiling,
                                   BatchNormBackward call) {
  PRECAST_SHARED(sums, float2[kThreads]);
  constexpr int kInFlight = 4;
  const int thread = static_cast<int>(threadIdx.x), lane = thread / kFinishedChannels;
  const int channel = static_cast<int>(blockIdx.x) * kFinishedChannels + thread % kFinishedChannels;
  const int chunks = channel < tiling.channels ? tiling.chunks : 0;
  float2 all{0, 0};
  for (int chunk = lane; chunk < chunks; chunk += kInFlight * kFinishLanes) {
    float2 in[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      const std::int64_t from = chunk + u * kFinishLanes;
      if (from < chunks) in[u] = partial[from * tiling.channels + channel];
    }
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      all.x += in[u].x;
      all.y += in[u].y;
    }
  }
  sums[thread] = all;
  for (int half = kFinishLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) {
      sums[thread].x += sums[thread + half * kFinishedChannels].x;
      sums[thread].y += sums[thread + half * kFinishedChannels].y;
    }
  }
  if (lane != 0 || channel >= tiling.channels) return;
  call.d_bias[channel] = sums[thread].x;
  call.d_weight[channel] = sums[thread].y;
}

template <typename T, int P, Gate kGate, bool kFork>
__global__ PRECAST_BOUNDS(kThreads, 4) void gradient_kernel(Tiling tiling, BatchNormBackward call) {
  using Reader = GradientReader<T, P, kGate, kFork>;
  constexpr int V = Reader::V, kInFlight = 2;
  const ThreadTile tile(tiling);
  if (tile.rows == 0) return;
  const Reader reader(call);
  const Affine<V> norm(call.mean, call.inv_std, call.weight, call.bias, tile.group * V);
  auto* const dx = static_cast<Pack<T, V>*>(call.dx);
  // dx = scale * (g - sum(g) / rows - normalised x * sum(g * normalised x) / rows)
  float mean[V], slope[V], offset[V];
  const float inv_rows = 1 / static_cast<float>(tiling.rows);
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    const int channel = tile.group * V + v;
    mean[v] = call.mean[channel];
    slope[v] = call.inv_std[channel] * call.d_weight[channel] * inv_rows;
    offset[v] = call.d_bias[channel] * inv_rows;
  }
  for (int k = tile.rows - 1; k >= 0; k -= kInFlight) {
    typename Reader::Row rows[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u)
      if (k >= u) reader.load(tile.first + (k - u) * tile.step, rows[u]);
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      Pack<T, V> out;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        const float centred = to_float(rows[u].x.values[v]) - mean[v];
        const float gradient = reader.gradient(rows[u], v, norm);
        round_to(norm.scale[v] * (gradient - offset[v] - centred * slope[v]), out.values[v]);
      }
      dx[tile.first + (k - u) * tile.step] = out;
    }
  }
}

/// Calls run.operator()<T, P, kGate, kFork>() with the template arguments that fit the call.
template <typename Run>
void for_reader(const BatchNormShape& shape, const BatchNormBackward& call, Run run) {
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    const auto with_gate = [&]<Gate kGate>() {
      if (call.dy_fork != nullptr) return run.template operator()<T, P, kGate, true>();
      run.template operator()<T, P, kGate, false>();
    };
    if (!call.relu) return with_gate.template operator()<Gate::open>();
    if (call.mask != nullptr) return with_gate.template operator()<Gate::mask>();
    with_gate.template operator()<Gate::recompute>();
  });
}

template <typename T, int P, Gate kGate, bool kFork>
void launch_gradient(const Tiling& tiling, const BatchNormBackward& call, cudaStream_t stream) {
  PRECAST_LAUNCH((gradient_kernel<T, P, kGate, kFork>), grid_of(tiling), kThreads, 0, stream,
                 tiling, call);
}

}  // namespace

void launch_finish_sums(const Tiling& tiling, const BatchNormBackward& call, cudaStream_t stream) {
  PRECAST_LAUNCH(finish_sums_kernel, finish_blocks(tiling), kThreads, 0, stream,
                 static_cast<const float2*>(call.workspace), tiling, call);
}

void batch_norm_gradient_sums(const BatchNormShape& shape, const BatchNormBackward& call,
                              cudaStream_t stream) {
  for_reader(shape, call, [&]<typename T, int P, Gate kGate, bool kFork>() {
    const Tiling tiling = tiling_of(shape, half_pack(P));
    PRECAST_LAUNCH((gradient_sums_kernel<T, P, kGate, kFork>), grid_of(tiling), kThreads, 0, stream,
                   tiling, call, static_cast<float2*>(call.workspace));
    launch_finish_sums(tiling, call, stream);
  });
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& call,
                         cudaStream_t stream) {
  batch_norm_gradient_sums(shape, call, stream);
  BatchNormBackward last = call;
  if (call.d_residual != nullptr) {
    last.dy = call.d_residual;
    last.dy_fork = nullptr;
    last.mask = nullptr;
    last.relu = false;
  }
  for_reader(shape, last, [&]<typename T, int P, Gate kGate, bool kFork>() {
    if constexpr (kGate != Gate::mask)
      launch_gradient<T, P, kGate, kFork>(tiling_of(shape, half_pack(P)), last, stream);
  });
}

}  // namespace precast::models
