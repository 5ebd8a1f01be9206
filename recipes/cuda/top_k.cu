#include "recipes/cuda/rows.cuh"
#include "recipes/cuda/top_k.h"

namespace precast::recipes {
namespace {

/// Stands for the rank of a label that is not a class.
constexpr int kNoRank = 0x7fffffff;

/// Whether a logit comes before the label's logit.
struct PrecedesLabel {
  float label_logit;
  std::int64_t label;
  __device__ __forceinline__ bool operator()(float logit, int index) const {
    const bool is_nan = logit != logit;
    const bool label_is_nan = label_logit != label_logit;
    if (is_nan != label_is_nan) return is_nan;
    if (is_nan || logit == label_logit) return index < label;
    return logit > label_logit;
  }
};

/// ranks[row] = the number of logits before the label's logit.
template <typename T, int V>
__global__ void __launch_bounds__(kMaxRowThreads)
    rank_kernel(LogitsShape shape, const T* __restrict__ logits,
                const std::int64_t* __restrict__ labels, int* __restrict__ ranks) {
  PRECAST_SHARED(warp_values, int[kMaxRowWarps]);
  const std::int64_t label = labels[blockIdx.x];
  if (label < 0 || label >= shape.classes) {
    if (threadIdx.x == 0) ranks[blockIdx.x] = kNoRank;
    return;
  }
  const T* const row = logits + static_cast<std::int64_t>(blockIdx.x) * shape.classes;
  const PrecedesLabel precedes{to_float(row[label]), label};
  int rank = 0;
  for (int i = static_cast<int>(threadIdx.x); i < shape.classes / V;
       i += static_cast<int>(blockDim.x)) {
    const auto pack = reinterpret_cast<const Pack<T, V>*>(row)[i];
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) rank += precedes(to_float(pack.values[v]), i * V + v) ? 1 : 0;
  }
  rank = block_reduce(rank, Sum{}, warp_values);
  if (threadIdx.x == 0) ranks[blockIdx.x] = rank;
}

/// Counts the rows whose rank is below k. Runs as one block.
__global__ void __launch_bounds__(kMaxRowThreads)
    count_ranks_kernel(std::int64_t rows, const int* __restrict__ ranks, std::int64_t k,
                       double* to) {
  PRECAST_SHARED(warp_values, int[kMaxRowWarps]);
  int count = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    const int rank = ranks[row];
    count += rank != kNoRank && rank < k ? 1 : 0;
  }
  count = block_reduce(count, Sum{}, warp_values);
  if (threadIdx.x == 0) *to = static_cast<double>(count);
}

}  // namespace

std::size_t top_k_workspace_bytes(const LogitsShape& shape) {
  return sizeof(int) * static_cast<std::size_t>(shape.rows);
}

std::size_t top_k_bytes(const LogitsShape& shape) {
  // One launch writes the ranks, another reads them.
  return logits_bytes(shape) +
         static_cast<std::size_t>(shape.rows) * (sizeof(std::int64_t) + 2 * sizeof(int));
}

void count_top_k(const LogitsShape& shape, const TopKCall& call, cudaStream_t stream) {
  auto* const ranks = static_cast<int*>(call.workspace);
  for_pack(shape.type, shape.classes, [&]<typename T, int V>(T) {
    PRECAST_LAUNCH((rank_kernel<T, V>), static_cast<unsigned>(shape.rows), row_threads(shape), 0,
                   stream, shape, static_cast<const T*>(call.logits), call.labels, ranks);
  });
  PRECAST_LAUNCH(count_ranks_kernel, 1, kMaxRowThreads, 0, stream, shape.rows, ranks, call.k,
                 call.count);
}

}  // namespace precast::recipes
