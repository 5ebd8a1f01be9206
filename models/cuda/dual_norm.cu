#include "models/cuda/batch_norm_gradient.cuh"
#include "models/cuda/dual_norm.h"

namespace precast::models {
namespace {

/// Minimum number of resident blocks of dual_apply_kernel() per multiprocessor.
constexpr int kApplyBlocks = 2;

template <typename T, int P>
__global__ PRECAST_BOUNDS(kThreads, kApplyBlocks) void dual_apply_kernel(Tiling tiling,
                                                                         DualNormForward call) {
  constexpr int kInFlight = 3;
  const ThreadTile tile(tiling);
  if (tile.rows == 0) return;
  const auto affine = [&](const BatchNormForward& of) {
    return Affine<P>(of.mean, of.inv_std, of.weight, of.bias, tile.group * P);
  };
  const Affine<P> norm = affine(call.norm), shortcut = affine(call.shortcut);
  const auto* const x = static_cast<const Pack<T, P>*>(call.norm.x);
  const auto* const shortcut_x = static_cast<const Pack<T, P>*>(call.shortcut.x);
  auto* const y = static_cast<Pack<T, P>*>(call.norm.y);
  for (int k = tile.rows - 1; k >= 0; k -= kInFlight) {
    Pack<T, P> in[kInFlight] = {}, added[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      const std::int64_t at = tile.first + (k - u) * tile.step;
      in[u] = x[at];
      added[u] = shortcut_x[at];
    }
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      const std::int64_t at = tile.first + (k - u) * tile.step;
      Pack<T, P> out;
      unsigned mask = 0;
      PRECAST_UNROLL
      for (int v = 0; v < P; ++v) {
        float value =
            norm(v, to_float(in[u].values[v])) + shortcut(v, to_float(added[u].values[v]));
        // Not fmaxf, which would turn NaN into 0.
        if (value <= 0) value = 0;
        round_to(value, out.values[v]);
        // The mask depends on the rounded value, as with separate ops.
        if (rounds_above_0<T>(value)) mask |= 1U << v;
      }
      y[at] = out;
      call.norm.mask[at] = static_cast<std::uint8_t>(mask);
    }
  }
}

/// Writes the gradient of the sum of both norms' results, and computes the sums of
/// gradient_sums_kernel() for both norms.
template <typename T, int P, bool kFork>
__global__ PRECAST_BOUNDS(kThreads, 3) void dual_sums_kernel(Tiling tiling, DualNormBackward call) {
  using Reader = GradientReader<T, P, Gate::mask, kFork>;
  constexpr int V = Reader::V, kInFlight = 2;
  const ThreadTile tile(tiling);
  float sum_dy[V] = {}, sum_dy_xhat[V] = {}, shortcut_sum_dy_xhat[V] = {};
  if (tile.rows > 0) {
    const Reader reader(call.norm);
    const auto* const shortcut_x = static_cast<const Pack<T, V>*>(call.shortcut.x);
    auto* const sum = static_cast<Pack<T, V>*>(call.norm.d_residual);
    float mean[V], shortcut_mean[V];
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      mean[v] = call.norm.mean[tile.group * V + v];
      shortcut_mean[v] = call.shortcut.mean[tile.group * V + v];
    }
    for (int k = 0; k < tile.rows; k += kInFlight) {
      typename Reader::Row rows[kInFlight] = {};
      Pack<T, V> shortcut_in[kInFlight] = {};
      PRECAST_UNROLL
      for (int u = 0; u < kInFlight; ++u) {
        if (k + u >= tile.rows) continue;
        const std::int64_t at = tile.first + (k + u) * tile.step;
        reader.load(at, rows[u]);
        shortcut_in[u] = shortcut_x[at];
      }
      PRECAST_UNROLL
      for (int u = 0; u < kInFlight; ++u) {
        if (k + u >= tile.rows) continue;
        Pack<T, V> passed;
        PRECAST_UNROLL
        for (int v = 0; v < V; ++v) {
          round_to(reader.gradient(rows[u], v), passed.values[v]);
          const float gradient = to_float(passed.values[v]);
          sum_dy[v] += gradient;
          sum_dy_xhat[v] += gradient * (to_float(rows[u].x.values[v]) - mean[v]);
          shortcut_sum_dy_xhat[v] +=
              gradient * (to_float(shortcut_in[u].values[v]) - shortcut_mean[v]);
        }
        sum[tile.first + (k + u) * tile.step] = passed;
      }
    }
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      sum_dy_xhat[v] *= call.norm.inv_std[tile.group * V + v];
      shortcut_sum_dy_xhat[v] *= call.shortcut.inv_std[tile.group * V + v];
    }
  }
  store_sums(tiling, tile, sum_dy, sum_dy_xhat, static_cast<float2*>(call.norm.workspace));
  __syncthreads();
  store_sums(tiling, tile, sum_dy, shortcut_sum_dy_xhat,
             static_cast<float2*>(call.shortcut.workspace));
}

/// The constants of dx = scale * (g - offset - (x - mean) * slope), see gradient_kernel().
template <int V>
struct GradientOfX {
  float scale[V], mean[V], slope[V], offset[V];
  __device__ GradientOfX(const BatchNormBackward& call, int first, float inv_rows) {
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const int channel = first + v;
      scale[v] = call.weight[channel] * call.inv_std[channel];
      mean[v] = call.mean[channel];
      slope[v] = call.inv_std[channel] * call.d_weight[channel] * inv_rows;
      offset[v] = call.d_bias[channel] * inv_rows;
    }
  }
  [[nodiscard]] __device__ float operator()(int v, float gradient, float x) const {
    return scale[v] * (gradient - offset[v] - (x - mean[v]) * slope[v]);
  }
};

template <typename T, int V>
__global__ PRECAST_BOUNDS(kThreads, 3) void dual_gradient_kernel(Tiling tiling,
                                                                 DualNormBackward call) {
  constexpr int kInFlight = 2;
  const ThreadTile tile(tiling);
  if (tile.rows == 0) return;
  const float inv_rows = 1 / static_cast<float>(tiling.rows);
  const GradientOfX<V> norm(call.norm, tile.group * V, inv_rows);
  const GradientOfX<V> shortcut(call.shortcut, tile.group * V, inv_rows);
  const auto* const sum = static_cast<const Pack<T, V>*>(call.norm.d_residual);
  const auto* const x = static_cast<const Pack<T, V>*>(call.norm.x);
  const auto* const shortcut_x = static_cast<const Pack<T, V>*>(call.shortcut.x);
  auto* const dx = static_cast<Pack<T, V>*>(call.norm.dx);
  auto* const d_shortcut = static_cast<Pack<T, V>*>(call.shortcut.dx);
  for (int k = tile.rows - 1; k >= 0; k -= kInFlight) {
    Pack<T, V> gradients[kInFlight] = {}, in[kInFlight] = {}, shortcut_in[kInFlight] = {};
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      const std::int64_t at = tile.first + (k - u) * tile.step;
      gradients[u] = sum[at];
      in[u] = x[at];
      shortcut_in[u] = shortcut_x[at];
    }
    PRECAST_UNROLL
    for (int u = 0; u < kInFlight; ++u) {
      if (k < u) continue;
      const std::int64_t at = tile.first + (k - u) * tile.step;
      Pack<T, V> out, shortcut_out;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        const float gradient = to_float(gradients[u].values[v]);
        round_to(norm(v, gradient, to_float(in[u].values[v])), out.values[v]);
        round_to(shortcut(v, gradient, to_float(shortcut_in[u].values[v])), shortcut_out.values[v]);
      }
      dx[at] = out;
      d_shortcut[at] = shortcut_out;
    }
  }
}

}  // namespace

void dual_norm_forward(const BatchNormShape& shape, const DualNormForward& call,
                       cudaStream_t stream) {
  batch_norm_statistics(shape, call.norm, stream);
  batch_norm_statistics(shape, call.shortcut, stream);
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    // A thread computes all values of one mask byte.
    const Tiling tiling = tiling_of(shape, P, kBlocks / 4 * kApplyBlocks);
    PRECAST_LAUNCH((dual_apply_kernel<T, P>), grid_of(tiling), kThreads, 0, stream, tiling, call);
  });
}

void dual_norm_backward(const BatchNormShape& shape, const DualNormBackward& call,
                        cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    const Tiling tiling = tiling_of(shape, half_pack(P));
    if (call.norm.dy_fork != nullptr)
      PRECAST_LAUNCH((dual_sums_kernel<T, P, true>), grid_of(tiling), kThreads, 0, stream, tiling,
                     call);
    else
      PRECAST_LAUNCH((dual_sums_kernel<T, P, false>), grid_of(tiling), kThreads, 0, stream, tiling,
                     call);
    launch_finish_sums(tiling, call.norm, stream);
    launch_finish_sums(tiling, call.shortcut, stream);
    PRECAST_LAUNCH((dual_gradient_kernel<T, half_pack(P)>), grid_of(tiling), kThreads, 0, stream,
                   tiling, call);
  });
}

}  // namespace precast::models
