#include <cmath>

#include "recipes/cuda/cross_entropy.h"
#include "recipes/cuda/rows.cuh"

namespace precast::recipes {
namespace {

/// Rows of up to this size are cached in shared memory, so that they are read from global memory
/// only once.
constexpr std::size_t kMaxCachedBytes = 32 << 10;

/// The workspace: the number of rows that count, then the loss of each row.
struct Workspace {
  float* valid_rows;
  float* losses;
  explicit Workspace(const CrossEntropyCall& call)
      : valid_rows(static_cast<float*>(call.workspace)), losses(valid_rows + 1) {}
};

/// Counts the rows whose label is not ignored. Runs as one block.
__global__ void __launch_bounds__(kMaxRowThreads)
    count_kernel(std::int64_t rows, CrossEntropyCall call, float* valid_rows) {
  PRECAST_SHARED(warp_values, int[kMaxRowWarps]);
  int count = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x)
    count += call.labels[row] != call.ignored_label ? 1 : 0;
  count = block_reduce(count, Sum{}, warp_values);
  if (threadIdx.x == 0) *valid_rows = static_cast<float>(count);
}

/// The row of a block. In every pass over the row, a thread reads the same packs.
template <typename T, int V, bool kCached>
struct Row {
  const Pack<T, V>* logits;
  Pack<T, V>* cache;
  int packs;

  /// Calls run(pack, index) for each pack that this thread reads. `first`: whether this is the
  /// first pass.
  template <typename Run>
  __device__ __forceinline__ void for_each(bool first, Run run) const {
    for (int i = static_cast<int>(threadIdx.x); i < packs; i += static_cast<int>(blockDim.x)) {
      Pack<T, V> pack;
      if constexpr (kCached) {
        if (first) cache[i] = logits[i];
        pack = cache[i];
      } else {
        pack = logits[i];
      }
      run(pack, i);
    }
  }
};

template <typename T, int V>
__device__ void write_zeros(Pack<T, V>* to, int packs) {
  Pack<T, V> zeros;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) round_to(0, zeros.values[v]);
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += static_cast<int>(blockDim.x))
    to[i] = zeros;
}

/// The values from which a row's loss and gradient are computed: its largest logit, and the sums
/// over its classes of exp(logit - largest) and of logit - largest.
struct Softmax {
  float largest;
  float sum_exp;
  float sum;
};

template <typename T, int V, bool kCached>
__device__ Softmax softmax_of(const Row<T, V, kCached>& row) {
  PRECAST_SHARED(warp_maxima, float[kMaxRowWarps]);
  PRECAST_SHARED(warp_sum_exps, float[kMaxRowWarps]);
  PRECAST_SHARED(warp_sums, float[kMaxRowWarps]);
  float largest = -INFINITY;
  row.for_each(true, [&](const Pack<T, V>& pack, int) {
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) largest = fmaxf(largest, to_float(pack.values[v]));
  });
  largest = block_reduce(largest, Largest{}, warp_maxima);
  float sum_exp = 0, sum = 0;
  row.for_each(false, [&](const Pack<T, V>& pack, int) {
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const float value = to_float(pack.values[v]) - largest;
      sum_exp += expf(value);
      sum += value;
    }
  });
  sum_exp = block_reduce(sum_exp, Sum{}, warp_sum_exps);
  return {largest, sum_exp, block_reduce(sum, Sum{}, warp_sums)};
}

template <typename T, int V, bool kCached>
__global__ void __launch_bounds__(kMaxRowThreads)
    row_kernel(LogitsShape shape, CrossEntropyCall call, const float* __restrict__ valid_rows,
               float* __restrict__ losses) {
  PRECAST_DYNAMIC_SHARED(cache, Pack<T, V>);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * shape.classes;
  const T* const values = static_cast<const T*>(call.logits) + first;
  auto* const gradient =
      call.d_logits == nullptr
          ? nullptr
          : reinterpret_cast<Pack<T, V>*>(static_cast<T*>(call.d_logits) + first);
  const Row<T, V, kCached> row{reinterpret_cast<const Pack<T, V>*>(values), cache,
                               shape.classes / V};
  const std::int64_t label = call.labels[blockIdx.x];
  if (label == call.ignored_label) {
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    if (gradient != nullptr) write_zeros(gradient, row.packs);
    return;
  }
  const bool is_class = label >= 0 && label < shape.classes;
  const Softmax softmax = softmax_of(row);
  const float confidence = 1 - call.label_smoothing;
  const float spread = call.label_smoothing / static_cast<float>(shape.classes);
  if (threadIdx.x == 0) {
    const float label_logit = is_class ? to_float(values[label]) : NAN;
    float loss = logf(softmax.sum_exp) - confidence * (label_logit - softmax.largest);
    // Without smoothing, a logit of -infinity must not turn the loss into NaN.
    if (spread > 0) loss -= spread * softmax.sum;
    losses[blockIdx.x] = loss;
  }
  if (gradient == nullptr) return;

  const float scale = (call.d_loss != nullptr ? *call.d_loss : 1) / *valid_rows;
  const float share = is_class ? scale / softmax.sum_exp : NAN;
  row.for_each(false, [&](const Pack<T, V>& pack, int i) {
    Pack<T, V> out;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      float value = expf(to_float(pack.values[v]) - softmax.largest) * share - spread * scale;
      if (i * V + v == label) value -= confidence * scale;
      round_to(value, out.values[v]);
    }
    gradient[i] = out;
  });
}

/// Computes the mean loss. Runs as one block. Adds in float64, because there may be many rows.
__global__ void __launch_bounds__(kMaxRowThreads)
    mean_kernel(std::int64_t rows, const float* __restrict__ valid_rows,
                const float* __restrict__ losses, float* loss) {
  PRECAST_SHARED(warp_values, double[kMaxRowWarps]);
  double sum = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) sum += double{losses[row]};
  sum = block_reduce(sum, Sum{}, warp_values);
  if (threadIdx.x == 0) *loss = static_cast<float>(sum / double{*valid_rows});
}

template <typename T, int V>
void run_rows(const LogitsShape& shape, const CrossEntropyCall& call, cudaStream_t stream) {
  const Workspace workspace(call);
  const auto rows = static_cast<unsigned>(shape.rows);
  const unsigned threads = row_threads(shape);
  const std::size_t row_bytes = static_cast<std::size_t>(shape.classes) * sizeof(T);
  if (row_bytes <= kMaxCachedBytes)
    PRECAST_LAUNCH((row_kernel<T, V, true>), rows, threads, row_bytes, stream, shape, call,
                   workspace.valid_rows, workspace.losses);
  else
    PRECAST_LAUNCH((row_kernel<T, V, false>), rows, threads, 0, stream, shape, call,
                   workspace.valid_rows, workspace.losses);
}

}  // namespace

std::size_t cross_entropy_workspace_bytes(const LogitsShape& shape) {
  return sizeof(float) * static_cast<std::size_t>(shape.rows + 1);
}

std::size_t cross_entropy_bytes(const LogitsShape& shape, bool gradient) {
  // Two launches read the labels; one writes the losses of the rows, another reads them.
  return (gradient ? 2 : 1) * logits_bytes(shape) +
         static_cast<std::size_t>(shape.rows) * 2 * (sizeof(std::int64_t) + sizeof(float));
}

void cross_entropy(const LogitsShape& shape, const CrossEntropyCall& call, cudaStream_t stream) {
  const Workspace workspace(call);
  PRECAST_LAUNCH(count_kernel, 1, kMaxRowThreads, 0, stream, shape.rows, call,
                 workspace.valid_rows);
  for_pack(shape.type, shape.classes,
           [&]<typename T, int V>(T) { run_rows<T, V>(shape, call, stream); });
  if (call.loss != nullptr)
    PRECAST_LAUNCH(mean_kernel, 1, kMaxRowThreads, 0, stream, shape.rows, workspace.valid_rows,
                   workspace.losses, call.loss);
}

}  // namespace precast::recipes
