#include <cuda_bf16.h>
#include <cuda_fp16.h>

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

/// Count, mean and sum of squared deviations of some values.
struct Moments {
  float count;
  float mean;
  float m2;
};

/// Chan, Golub, LeVeque 1979: moments of the union.
__device__ __forceinline__ Moments merged(const Moments& a, const Moments& b) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  const float count = a.count + b.count;
  const float delta = b.mean - a.mean;
  const float share = b.count / count;
  return {count, a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.count * share};
}

/// Moments of the chunk's rows, per channel: partial[chunk, channel].
template <typename T, int V>
__global__ void moments_kernel(const T* __restrict__ x, Tiling tiling,
                               float2* __restrict__ partial) {
  PRECAST_SHARED(moments, float2[kThreads][V]);
  PRECAST_SHARED(counts, float[kThreads]);
  const Place place(tiling);
  // Sums of differences from the first value: exact enough even if the mean is far from zero.
  float shift[V] = {}, sum[V] = {}, squares[V] = {};
  float count = 0;
  if (place.group < tiling.groups) {
    for (std::int64_t row = place.first_row + place.line; row < place.end_row;
         row += tiling.lines) {
      const auto pack = reinterpret_cast<const Pack<T, V>*>(x)[row * tiling.groups + place.group];
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        const float value = to_float(pack.values[v]);
        if (count == 0) shift[v] = value;
        const float difference = value - shift[v];
        sum[v] += difference;
        squares[v] += difference * difference;
      }
      count += 1;
    }
  }
  const float share = count > 0 ? 1 / count : 0;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    const float mean = sum[v] * share;
    const float m2 = squares[v] - sum[v] * mean;
    moments[threadIdx.x][v] = {shift[v] + mean, m2 > 0 ? m2 : 0};
  }
  counts[threadIdx.x] = count;
  for (int half = tiling.lines / 2; half > 0; half /= 2) {
    __syncthreads();
    if (place.line < half) {
      const int mine = static_cast<int>(threadIdx.x);
      const int other = mine + half * tiling.lanes;
      const float mine_count = counts[mine], other_count = counts[other];
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) {
        const Moments both = merged({mine_count, moments[mine][v].x, moments[mine][v].y},
                                    {other_count, moments[other][v].x, moments[other][v].y});
        moments[mine][v] = {both.mean, both.m2};
      }
      counts[mine] = mine_count + other_count;
    }
  }
  // Thread 0 of a column merged it and reads only its own results: no barrier.
  if (place.line != 0 || place.group >= tiling.groups) return;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    partial[static_cast<std::int64_t>(blockIdx.y) * tiling.channels + place.group * V + v] =
        moments[threadIdx.x][v];
  }
}

/// Merges the chunks' moments, a warp per channel.
__global__ void finish_moments_kernel(const float2* __restrict__ partial, Tiling tiling,
                                      BatchNormForward call) {
  const int channel =
      static_cast<int>(blockIdx.x) * kFinishedChannels + static_cast<int>(threadIdx.x) / warpSize;
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  Moments all{0, 0, 0};
  if (channel < tiling.channels) {
    for (int chunk = lane; chunk < tiling.chunks; chunk += warpSize) {
      const std::int64_t left = tiling.rows - static_cast<std::int64_t>(chunk) * tiling.chunk_rows;
      const float2 moments = partial[static_cast<std::int64_t>(chunk) * tiling.channels + channel];
      all = merged(all, {static_cast<float>(left < tiling.chunk_rows ? left : tiling.chunk_rows),
                         moments.x, moments.y});
    }
  }
  for (int offset = warpSize / 2; offset > 0; offset /= 2) {
    const Moments other{__shfl_down_sync(~0U, all.count, offset),
                        __shfl_down_sync(~0U, all.mean, offset),
                        __shfl_down_sync(~0U, all.m2, offset)};
    all = merged(all, other);
  }
  if (lane != 0 || channel >= tiling.channels) return;
  const float rows = static_cast<float>(tiling.rows);
  call.mean[channel] = all.mean;
  call.inv_std[channel] = 1 / sqrtf(all.m2 / rows + call.eps);
  if (call.running_mean == nullptr) return;
  call.running_mean[channel] += call.momentum * (all.mean - call.running_mean[channel]);
  call.running_var[channel] += call.momentum * (all.m2 / (rows - 1) - call.running_var[channel]);
}

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

template <typename T, int V, bool kResidual>
__global__ void apply_kernel(Tiling tiling, BatchNormForward call) {
  const Place place(tiling);
  if (place.group >= tiling.groups) return;
  const Affine<V> norm(call.mean, call.inv_std, call.weight, call.bias, place.group * V);
  const auto* const x = static_cast<const Pack<T, V>*>(call.x);
  const auto* const residual = static_cast<const Pack<T, V>*>(call.residual);
  auto* const y = static_cast<Pack<T, V>*>(call.y);
  for (std::int64_t row = place.first_row + place.line; row < place.end_row; row += tiling.lines) {
    const std::int64_t at = row * tiling.groups + place.group;
    const Pack<T, V> in = x[at];
    Pack<T, V> added{};
    if constexpr (kResidual) added = residual[at];
    Pack<T, V> out;
    unsigned mask = 0;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      float value = norm(v, to_float(in.values[v]));
      if constexpr (kResidual) value += to_float(added.values[v]);
      // Not fmaxf, which would turn NaN into 0.
      if (call.relu && value <= 0) value = 0;
      round_to(value, out.values[v]);
      // The rounded value decides, as for separate ops.
      if (to_float(out.values[v]) > 0) mask |= 1U << v;
    }
    y[at] = out;
    if constexpr (kResidual)
      if (call.relu) call.mask[at] = static_cast<std::uint8_t>(mask);
  }
}

/// The gradient before the ReLU.
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

/// Sums of the gradient, and of the gradient times the normalised x, over the chunk's rows.
template <typename T, int V>
__global__ void gradient_sums_kernel(Tiling tiling, BatchNormBackward call,
                                     float2* __restrict__ partial) {
  PRECAST_SHARED(sums, float2[kThreads][V]);
  const Place place(tiling);
  float direct[V] = {}, scaled[V] = {};
  if (place.group < tiling.groups) {
    const GradientReader<T, V> reader(call, place.group);
    const auto* const x = static_cast<const Pack<T, V>*>(call.x);
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
  auto* const d_residual = static_cast<Pack<T, V>*>(call.d_residual);
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
    Pack<T, V> out, passed;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const float centred = to_float(in.values[v]) - mean[v];
      round_to(reader.norm.scale[v] * (gradient[v] - offset[v] - centred * slope[v]),
               out.values[v]);
      round_to(gradient[v], passed.values[v]);
    }
    dx[at] = out;
    if (d_residual != nullptr) d_residual[at] = passed;
  }
}

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

std::size_t batch_norm_mask_bytes(const BatchNormShape& shape) {
  return static_cast<std::size_t>(shape.rows) *
         static_cast<std::size_t>(shape.channels / pack_of(shape));
}

std::size_t batch_norm_workspace_bytes(const BatchNormShape& shape) {
  return sizeof(float2) * static_cast<std::size_t>(tiling_of(shape, pack_of(shape)).chunks) *
         static_cast<std::size_t>(shape.channels);
}

void batch_norm_forward(const BatchNormShape& shape, const BatchNormForward& call,
                        cudaStream_t stream) {
  for_pack(shape, [&]<typename T, int V>(T) {
    const Tiling tiling = tiling_of(shape, V);
    auto* const partial = static_cast<float2*>(call.workspace);
    PRECAST_LAUNCH((moments_kernel<T, V>), grid_of(tiling), kThreads, 0, stream,
                   static_cast<const T*>(call.x), tiling, partial);
    PRECAST_LAUNCH(finish_moments_kernel, finish_blocks(tiling), kThreads, 0, stream, partial,
                   tiling, call);
    if (call.residual != nullptr)
      PRECAST_LAUNCH((apply_kernel<T, V, true>), grid_of(tiling), kThreads, 0, stream, tiling,
                     call);
    else
      PRECAST_LAUNCH((apply_kernel<T, V, false>), grid_of(tiling), kThreads, 0, stream, tiling,
                     call);
  });
}

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& call,
                         cudaStream_t stream) {
  for_pack(shape, [&]<typename T, int V>(T) {
    const Tiling tiling = tiling_of(shape, V);
    auto* const partial = static_cast<float2*>(call.workspace);
    PRECAST_LAUNCH((gradient_sums_kernel<T, V>), grid_of(tiling), kThreads, 0, stream, tiling, call,
                   partial);
    PRECAST_LAUNCH(finish_sums_kernel, finish_blocks(tiling), kThreads, 0, stream, partial, tiling,
                   call);
    PRECAST_LAUNCH((gradient_kernel<T, V>), grid_of(tiling), kThreads, 0, stream, tiling, call);
  });
}

}  // namespace precast::models
