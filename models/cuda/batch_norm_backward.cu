#include "models/cuda/batch_norm_tiling.cuh"

namespace precast::models {
namespace {

/// Reads the gradient of y and computes the gradient of the ReLU's input.
/// @tparam kRecompute whether the ReLU's output is computed again from x, because there is no mask
template <typename T, int V, bool kRecompute>
struct GradientReader {
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
    if (fork != nullptr) row.fork = fork[at];
    if constexpr (!kRecompute)
      if (mask != nullptr) row.bits = mask[at];
  }
  __device__ float gradient(const Row& row, int v, const Affine<V>& norm) const {
    float sum = to_float(row.dy.values[v]);
    if (fork != nullptr) sum += to_float(row.fork.values[v]);
    if constexpr (kRecompute)
      return rounds_above_0<T>(norm(v, to_float(row.x.values[v]))) ? sum : 0;
    return mask == nullptr || (row.bits >> v & 1U) != 0 ? sum : 0;
  }
};

/// Sums the gradient of the ReLU's input, and this gradient times the normalised x, over the
/// chunk's rows. If there is a residual, also writes the gradient, which is the residual's
/// gradient; gradient_kernel() then reads it instead of dy, dy_fork and the mask.
template <typename T, int V, bool kRecompute>
__global__ PRECAST_BOUNDS(kThreads, 2) void gradient_sums_kernel(Tiling tiling,
                                                                 BatchNormBackward call,
                                                                 float2* __restrict__ partial) {
  PRECAST_SHARED(sums, float2[kThreads][V]);
  constexpr int kInFlight = kRecompute ? 2 : 3;
  using Reader = GradientReader<T, V, kRecompute>;
  const Place place(tiling);
  float direct[V] = {}, scaled[V] = {};
  if (place.rows > 0) {
    const Reader reader(call);
    const Affine<V> norm(call.mean, call.inv_std, call.weight, call.bias, place.group * V);
    auto* const d_residual = static_cast<Pack<T, V>*>(call.d_residual);
    float mean[V];
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) mean[v] = call.mean[place.group * V + v];
    for (int k = 0; k < place.rows; k += kInFlight) {
      typename Reader::Row rows[kInFlight] = {};
      PRECAST_UNROLL
      for (int u = 0; u < kInFlight; ++u)
        if (k + u < place.rows) reader.load(place.first + (k + u) * place.step, rows[u]);
      PRECAST_UNROLL
      for (int u = 0; u < kInFlight; ++u) {
        if (k + u >= place.rows) continue;
        Pack<T, V> passed{};
        PRECAST_UNROLL
        for (int v = 0; v < V; ++v) {
          float gradient = reader.gradient(rows[u], v, norm);
          if (d_residual != nullptr) {
            round_to(gradient, passed.values[v]);
            gradient = to_float(passed.values[v]);
          }
          direct[v] += gradient;
          scaled[v] += gradient * (to_float(rows[u].x.values[v]) - mean[v]);
        }
        if (d_residual != nullptr) d_residual[place.first + (k + u) * place.step] = passed;
      }
    }
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) scaled[v] *= call.inv_std[place.group * V + v];
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

/// Adds the sums of the chunks.
__global__ void finish_sums_kernel(const float2* __restrict__ partial, Tiling tiling,
                                   BatchNormBackward call) {
  PRECAST_SHARED(sums, float2[kThreads]);
  constexpr int kInFlight = 4;
  const int mine = static_cast<int>(threadIdx.x), lane = mine / kFinishedChannels;
  const int channel = static_cast<int>(blockIdx.x) * kFinishedChannels + mine % kFinishedChannels;
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
  sums[mine] = all;
  for (int half = kFinishLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) {
      sums[mine].x += sums[mine + half * kFinishedChannels].x;
      sums[mine].y += sums[mine + half * kFinishedChannels].y;
    }
  }
  if (lane != 0 || channel >= tiling.channels) return;
  call.d_bias[channel] = sums[mine].x;
  call.d_weight[channel] = sums[mine].y;
}

template <typename T, int V, bool kRecompute>
__global__ PRECAST_BOUNDS(kThreads, 3) void gradient_kernel(Tiling tiling, BatchNormBackward call) {
  using Reader = GradientReader<T, V, kRecompute>;
  const Place place(tiling);
  if (place.rows == 0) return;
  const Reader reader(call);
  const Affine<V> norm(call.mean, call.inv_std, call.weight, call.bias, place.group * V);
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
  for (int k = place.rows - 1; k >= 0; --k) {
    const std::int64_t at = place.first + k * place.step;
    typename Reader::Row row{};
    reader.load(at, row);
    Pack<T, V> out;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const float centred = to_float(row.x.values[v]) - mean[v];
      const float gradient = reader.gradient(row, v, norm);
      round_to(norm.scale[v] * (gradient - offset[v] - centred * slope[v]), out.values[v]);
    }
    dx[at] = out;
  }
}

template <typename T, int V, bool kRecompute>
void launch_sums(const Tiling& tiling, const BatchNormBackward& call, cudaStream_t stream) {
  PRECAST_LAUNCH((gradient_sums_kernel<T, V, kRecompute>), grid_of(tiling), kThreads, 0, stream,
                 tiling, call, static_cast<float2*>(call.workspace));
}

template <typename T, int V, bool kRecompute>
void launch_gradient(const Tiling& tiling, const BatchNormBackward& call, cudaStream_t stream) {
  PRECAST_LAUNCH((gradient_kernel<T, V, kRecompute>), grid_of(tiling), kThreads, 0, stream, tiling,
                 call);
}

}  // namespace

void batch_norm_backward(const BatchNormShape& shape, const BatchNormBackward& call,
                         cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    const Tiling tiling = tiling_of(shape, V);
    const bool recompute = call.relu && call.mask == nullptr;
    BatchNormBackward first = call;
    if (!call.relu) first.mask = nullptr;
    (recompute ? launch_sums<T, V, true> : launch_sums<T, V, false>)(tiling, first, stream);
    PRECAST_LAUNCH(finish_sums_kernel, finish_blocks(tiling), kThreads, 0, stream,
                   static_cast<const float2*>(call.workspace), tiling, call);
    BatchNormBackward last = first;
    if (call.d_residual != nullptr) {
      last.dy = call.d_residual;
      last.dy_fork = nullptr;
      last.mask = nullptr;
    }
    const bool again = recompute && call.d_residual == nullptr;
    (again ? launch_gradient<T, V, true> : launch_gradient<T, V, false>)(tiling, last, stream);
  });
}

}  // namespace precast::models
