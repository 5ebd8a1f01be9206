#include "framework/core/cuda_values.cuh"
#include "recipes/cuda/sgd.h"

namespace precast::recipes {
namespace {

constexpr int kSgdThreads = 256;
/// Number of elements that a thread reads at a time.
constexpr int kSgdPack = 4;

/// The tensors of a launch, without empty ones, as an argument of its kernel.
struct SgdTable {
  SgdTensor tensors[kSgdMostTensors];
  /// The index of each tensor's first chunk.
  int first_chunk[kSgdMostTensors];
  int tensor_count;
  int chunk_count;
};
/// Since CUDA 12.1, a kernel can have 32,764 bytes of arguments.
static_assert(sizeof(SgdTable) < 16 << 10);

/// The part of a tensor that a block reads: from `first`, up to kSgdChunkSize elements.
struct Chunk {
  int tensor;
  std::int64_t first;
};

/// Finds the chunk of this block by binary search over the tensors' first chunks. All threads of
/// the block get the same result.
__device__ __forceinline__ Chunk chunk_of_block(const SgdTable& table) {
  const int number = static_cast<int>(blockIdx.x);
  int tensor = 0, end = table.tensor_count;
  while (end - tensor > 1) {
    const int middle = (tensor + end) / 2;
    (table.first_chunk[middle] <= number ? tensor : end) = middle;
  }
  return {tensor, (number - table.first_chunk[tensor]) * kSgdChunkSize};
}

template <typename T, int V>
__device__ __forceinline__ void read_as(const void* from, std::int64_t at, float (&values)[V]) {
  const auto pack = *reinterpret_cast<const Pack<T, V>*>(static_cast<const T*>(from) + at);
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) values[v] = to_float(pack.values[v]);
}

/// The type is the same for all threads of a block, so they take the same branch.
template <int V>
__device__ __forceinline__ void read(const void* from, FloatType type, std::int64_t at,
                                     float (&values)[V]) {
  if (type == FloatType::f32) return read_as<float>(from, at, values);
  if (type == FloatType::f16) return read_as<__half>(from, at, values);
  read_as<__nv_bfloat16>(from, at, values);
}

template <int V>
__device__ __forceinline__ void write(float* to, std::int64_t at, const float (&values)[V]) {
  Pack<float, V> pack;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) pack.values[v] = values[v];
  *reinterpret_cast<Pack<float, V>*>(to + at) = pack;
}

__device__ __forceinline__ bool is_aligned(const void* array, FloatType type) {
  return reinterpret_cast<std::uintptr_t>(array) % (kSgdPack * bytes_of(type)) == 0;
}

/// Whether all arrays can be read in packs. A gradient may be part of a larger buffer and begin
/// anywhere in it.
__device__ __forceinline__ bool has_packs(const SgdTensor& tensor) {
  return is_aligned(tensor.parameter, FloatType::f32) &&
         is_aligned(tensor.gradient, tensor.gradient_type) &&
         is_aligned(tensor.velocity, FloatType::f32);
}

/// Calls run<V>(i) for each index i at which the thread reads V elements of the chunk. The index of
/// a chunk's first element is a multiple of kSgdPack.
template <typename Run>
__device__ __forceinline__ void for_elements(std::int64_t first, std::int64_t count, bool packs,
                                             Run run) {
  const std::int64_t left = count - first;
  const int size = static_cast<int>(left < kSgdChunkSize ? left : kSgdChunkSize);
  const int packed = packs ? size / kSgdPack * kSgdPack : 0;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread * kSgdPack; i < packed; i += kSgdThreads * kSgdPack)
    run.template operator()<kSgdPack>(first + i);
  for (int i = packed + thread; i < size; i += kSgdThreads) run.template operator()<1>(first + i);
}

__device__ __forceinline__ float unscaled_by(const float* grad_scale) {
  return grad_scale != nullptr ? 1 / *grad_scale : 1;
}

/// The update of the elements of a tensor in one step.
struct Update {
  SgdTensor tensor;
  float lr;
  float factor;
  float momentum;
  bool nesterov;

  __device__ Update(const SgdTensor& of, const SgdStep& step)
      : tensor(of),
        lr(step.lr_on_device != nullptr ? *step.lr_on_device : step.lr),
        factor(unscaled_by(step.grad_scale) * (step.clip != nullptr ? *step.clip : 1)),
        momentum(step.momentum),
        nesterov(step.nesterov) {}

  template <int V>
  __device__ __forceinline__ void operator()(std::int64_t at) const {
    float parameter[V], gradient[V], velocity[V] = {};
    read(tensor.parameter, FloatType::f32, at, parameter);
    read(tensor.gradient, tensor.gradient_type, at, gradient);
    if (tensor.velocity != nullptr) read(tensor.velocity, FloatType::f32, at, velocity);
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      float change = gradient[v] * factor + tensor.weight_decay * parameter[v];
      if (tensor.velocity != nullptr) {
        velocity[v] = momentum * velocity[v] + change;
        change = nesterov ? change + momentum * velocity[v] : velocity[v];
      }
      parameter[v] -= lr * change;
    }
    write(tensor.parameter, at, parameter);
    if (tensor.velocity != nullptr) write(tensor.velocity, at, velocity);
  }
};

__global__ void __launch_bounds__(kSgdThreads) sgd_kernel(SgdTable table, SgdStep step) {
  if (step.found_inf != nullptr && *step.found_inf != 0) return;
  const Chunk chunk = chunk_of_block(table);
  const Update update(table.tensors[chunk.tensor], step);
  for_elements(chunk.first, update.tensor.count, has_packs(update.tensor), update);
}

/// A sum of squares, and a number that is above 0 if one of the values is not finite.
struct Squares {
  float sum;
  float not_finite;
};

/// Returns the block's sum in thread 0. The order of the additions is fixed.
__device__ Squares block_sum(const Squares& squares) {
  PRECAST_SHARED(sums, Squares[kSgdThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = squares;
  for (int half = kSgdThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread >= half) continue;
    sums[thread].sum += sums[thread + half].sum;
    sums[thread].not_finite += sums[thread + half].not_finite;
  }
  return sums[thread];
}

struct SumSquares {
  const void* gradient;
  FloatType type;
  float factor;
  Squares* squares;

  template <int V>
  __device__ __forceinline__ void operator()(std::int64_t at) const {
    float gradient_values[V];
    read(gradient, type, at, gradient_values);
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const float value = gradient_values[v] * factor;
      squares->sum += value * value;
      // x - x is NaN if x is not finite.
      if (!(value - value == 0)) squares->not_finite = 1;
    }
  }
};

__global__ void __launch_bounds__(kSgdThreads)
    squares_kernel(SgdTable table, GradientNorm call, Squares* __restrict__ partial) {
  const Chunk chunk = chunk_of_block(table);
  const SgdTensor& tensor = table.tensors[chunk.tensor];
  Squares squares{0, 0};
  const SumSquares sum{tensor.gradient, tensor.gradient_type, unscaled_by(call.grad_scale),
                       &squares};
  for_elements(chunk.first, tensor.count, is_aligned(tensor.gradient, tensor.gradient_type), sum);
  squares = block_sum(squares);
  if (threadIdx.x == 0) partial[blockIdx.x] = squares;
}

/// Adds the sums of the chunks and computes the results. Runs as one block.
__global__ void __launch_bounds__(kSgdThreads)
    norm_kernel(const Squares* __restrict__ partial, int count, GradientNorm call) {
  Squares squares{0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kSgdThreads) {
    squares.sum += partial[i].sum;
    squares.not_finite += partial[i].not_finite;
  }
  squares = block_sum(squares);
  if (threadIdx.x != 0) return;
  const float norm = sqrtf(squares.sum);
  const float clip = call.max_norm / (norm + 1e-6F);
  if (call.norm != nullptr) *call.norm = norm;
  // If the norm is NaN, the factor is NaN too, as in torch.
  if (call.clip != nullptr) *call.clip = clip > 1 ? 1 : clip;
  if (call.found_inf != nullptr) *call.found_inf = squares.not_finite > 0 ? 1 : 0;
}

int chunks_of(const SgdTensor& tensor) {
  return static_cast<int>((tensor.count + kSgdChunkSize - 1) / kSgdChunkSize);
}

/// Calls launch(table) for each launch that the tensors need.
template <typename Launch>
void for_tables(SgdTensors tensors, Launch launch) {
  SgdTable table{};
  for (const SgdTensor& tensor : tensors) {
    if (tensor.count == 0) continue;
    table.tensors[table.tensor_count] = tensor;
    table.first_chunk[table.tensor_count++] = table.chunk_count;
    table.chunk_count += chunks_of(tensor);
    if (table.tensor_count < static_cast<int>(kSgdMostTensors)) continue;
    launch(table);
    table = {};
  }
  if (table.tensor_count > 0) launch(table);
}

std::size_t elements_of(const SgdTensor& tensor) {
  return static_cast<std::size_t>(tensor.count);
}

}  // namespace

void sgd_step(SgdTensors tensors, const SgdStep& step, cudaStream_t stream) {
  for_tables(tensors, [&](const SgdTable& table) {
    PRECAST_LAUNCH(sgd_kernel, static_cast<unsigned>(table.chunk_count), kSgdThreads, 0, stream,
                   table, step);
  });
}

std::size_t gradient_norm_workspace_bytes(SgdTensors tensors) {
  std::size_t chunks = 0;
  for (const SgdTensor& tensor : tensors) chunks += static_cast<std::size_t>(chunks_of(tensor));
  return sizeof(Squares) * chunks;
}

void gradient_norm(SgdTensors tensors, const GradientNorm& call, cudaStream_t stream) {
  auto* const partial = static_cast<Squares*>(call.workspace);
  int chunks = 0;
  for_tables(tensors, [&](const SgdTable& table) {
    PRECAST_LAUNCH(squares_kernel, static_cast<unsigned>(table.chunk_count), kSgdThreads, 0, stream,
                   table, call, partial + chunks);
    chunks += table.chunk_count;
  });
  PRECAST_LAUNCH(norm_kernel, 1, kSgdThreads, 0, stream, partial, chunks, call);
}

std::size_t sgd_bytes(SgdTensors tensors) {
  std::size_t bytes = 0;
  for (const SgdTensor& tensor : tensors) {
    const std::size_t floats = tensor.velocity != nullptr ? 4 : 2;
    bytes += elements_of(tensor) * (bytes_of(tensor.gradient_type) + floats * sizeof(float));
  }
  return bytes;
}

std::size_t gradient_norm_bytes(SgdTensors tensors) {
  // One launch writes the sums of the chunks, another reads them.
  std::size_t bytes = 2 * gradient_norm_workspace_bytes(tensors);
  for (const SgdTensor& tensor : tensors)
    bytes += elements_of(tensor) * bytes_of(tensor.gradient_type);
  return bytes;
}

}  // namespace precast::recipes
