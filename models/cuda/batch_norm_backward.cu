#include "models/cuda/batch_norm_tiling.cuh"

namespace precast::models {
namespace {

/// Reads the gradient of y and computes the gradient of the ReLU's input.
template <typename T, int V>
struct GradientReader {
  Affine<V> norm;
  const Pack<T, V>* dy;
  const Pack<T, V>* fork;
  const std::uint8_t* mask;
  bool relu;
  __device__ GradientReader(const BatchNormBackward& call, int group)
      : norm(call.mean, call.inv_std, call.weight, call.bias, group * V),
        dy(static_cast<const Pack<T, V>*>(call.dy)),
        fork(static_cast<const Pack<T, V>*>(call.dy_fork)),
        mask(call.mask),
        relu(call.relu) {}
  __device__ void read(std::int64_t at, const Pack<T, V>& x, float (&gradient)[V]) const {
    const Pack<T, V> first = dy[at];
    Pack<T, V> second{};
    if (fork != nullptr) second = fork[at];
    const unsigned bits = relu && mask != nullptr ? mask[at] : 0;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      gradient[v] = to_float(first.values[v]);
      if (fork != nullptr) gradient[v] += to_float(second.values[v]);
      if (!relu) continue;
      bool passes = (bits >> v & 1U) != 0;
      if (mask == nullptr) {
        T rounded;
        round_to(norm(v, to_float(x.values[v])), rounded);
        passes = to_float(rounded) > 0;
      }
      if (!passes) gradient[v] = 0;
    }
  }
};

/// Sums the gradient of the ReLU's input, and this gradient times the normalised x, over the
/// chunk's rows. If there is a residual, also writes the gradient, which is the residual's
/// gradient; gradient_kernel() then reads it instead of dy, dy_fork and the mask.
template <typename T, int V>
__global__ void gradient_sums_kernel(Tiling tiling, BatchNormBackward call,
                                     float2* __restrict__ partial) {
  PRECAST_SHARED(sums, float2[kThreads][V]);
  const Place place(tiling);
  float direct[V] = {}, scaled[V] = {};
  if (place.group < tiling.groups) {
    const GradientReader<T, V> reader(call, place.group);
    const auto* const x = static_cast<const Pack<T, V>*>(call.x);
    auto* const d_residual = static_cast<Pack<T, V>*>(call.d_residual);
    float mean[V], inv_std[V];
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      mean[v] = call.mean[place.group * V + v];
      inv_std[v] = call.inv_std[place.group * V + v];
    }
    for (std::int64_t row = place.first_row + place.line; row < place.end_row;
         row += tiling.lines) {
      const std::int64_t at = row * tiling.groups + place.group;
      const Pack<T, V> in = x[at];
      float gradient[V];
      reader.read(at, in, gradient);
      if (d_residual != nullptr) {
        Pack<T, V> passed;
        PRECAST_UNROLL
        for (int v = 0; v < V; ++v) {
          round_to(gradient[v], passed.values[v]);
          gradient[v] = to_float(passed.values[v]);
        }
        d_residual[at] = passed;
      }
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        direct[v] += gradient[v];
        scaled[v] += gradient[v] * ((to_float(in.values[v]) - mean[v]) * inv_std[v]);
      }
    }
  }
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) sums[threadIdx.x][v] = {direct[v], scaled[v]};
  for (int half = tiling.lines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (place.line < half) {
      const int mine = static_cast<int>(threadIdx.x);
      const int other = mine + half * tiling.lanes;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        sums[mine][v].x += sums[other][v].x;
        sums[mine][v].y += sums[other][v].y;
      }
    }
  }
  if (place.line != 0 || place.group >= tiling.groups) return;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    partial[static_cast<std::int64_t>(blockIdx.y) * tiling.channels + place.group * V + v] =
        sums[threadIdx.x][v];
  }
}

__global__ void finish_sums_kernel(const float2* __restrict__ partial, Tiling tiling,
                                   BatchNormBackward call) {
  const int channel =
      static_cast<int>(blockIdx.x) * kFinishedChannels + static_cast<int>(threadIdx.x) / warpSize;
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  float direct = 0, scaled = 0;
  if (channel < tiling.channels) {
    for (int chunk = lane; chunk < tiling.chunks; chunk += warpSize) {
      const float2 sums = partial[static_cast<std::int64_t>(chunk) * tiling.channels + channel];
      direct += sums.x;
      scaled += sums.y;
    }
  }
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    direct += __shfl_down_sync(~0U, direct, offset);
    scaled += __shfl_down_sync(~0U, scaled, offset);
  }
  if (lane != 0 || channel >= tiling.channels) return;
  call.d_bias[channel] = direct;
  call.d_weight[channel] = scaled;
}

template <typename T, int V>
__global__ void gradient_kernel(Tiling tiling, BatchNormBackward call) {
  const Place place(tiling);
  if (place.group >= tiling.groups) return;
  const GradientReader<T, V> reader(call, place.group);
  const auto* const x = static_cast<const Pack<T, V>*>(call.x);
  auto* const dx = static_cast<Pack<T, V>*>(call.dx);
  // dx = scale * (g - sum(g) / rows - normalised x * sum(g * normalised x) / rows)
  float mean[V], slope[V], offset[V];
  const float share = 1 / static_cast<float>(tiling.rows);
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    const int channel = place.group * V + v;
    mean[v] = call.mean[channel];
    slope[v] = call.inv_std[channel] * call.d_weight[channel] * share;
    offset[v] = call.d_bias[channel] * share;
  }
  for (std::int64_t row = place.first_row + place.line; row < place.end_row; row += tiling.lines) {
    const std::int64_t at = row * tiling.groups + place.group;
    const Pack<T, V> in = x[at];
    float gradient[V];
    reader.read(at, in, gradient);
    Pack<T, V> out;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const float centred = to_float(in.values[v]) - mean[v];
      round_to(reader.norm.scale[v] * (gradient[v] - offset[v] - centred * slope[v]),
               out.values[v]);
    }
    dx[at] = out;
  }
}

}  // namespace

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& call,
                         cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    const Tiling tiling = tiling_of(shape, V);
    auto* const partial = static_cast<float2*>(call.workspace);
    PRECAST_LAUNCH((gradient_sums_kernel<T, V>), grid_of(tiling), kThreads, 0, stream, tiling, call,
                   partial);
    PRECAST_LAUNCH(finish_sums_kernel, finish_blocks(tiling), kThreads, 0, stream, partial, tiling,
                   call);
    BatchNormBackward last = call;
    if (call.d_residual != nullptr) {
      last.dy = call.d_residual;
      last.dy_fork = nullptr;
      last.relu = false;
    }
    PRECAST_LAUNCH((gradient_kernel<T, V>), grid_of(tiling), kThreads, 0, stream, tiling, last);
  });
}

}  // namespace precast::models
