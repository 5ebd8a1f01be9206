#include "framework/core/cuda_values.cuh"
#include "recipes/cuda/sgd.h"

namespace precast::recipes {
namespace {

constexpr int kSgdThreads = 256;
/// Elements that a thread reads at a time.
constexpr int kSgdPack = 4;

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

template <typename T, int V>
__device__ __forceinline__ void write_as(void* to, std::int64_t at, const float (&values)[V]) {
  Pack<T, V> pack;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) round_to(values[v], pack.values[v]);
  *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(to) + at) = pack;
}

template <int V>
__device__ __forceinline__ void write(void* to, FloatType type, std::int64_t at,
                                      const float (&values)[V]) {
  if (type == FloatType::f32) return write_as<float>(to, at, values);
  if (type == FloatType::f16) return write_as<__half>(to, at, values);
  write_as<__nv_bfloat16>(to, at, values);
}

__device__ __forceinline__ bool is_aligned(const void* array, FloatType type) {
  return reinterpret_cast<std::uintptr_t>(array) % (kSgdPack * bytes_of(type)) == 0;
}

/// A gradient may be part of a buffer of several, and begin anywhere in it.
__device__ __forceinline__ bool has_packs(const SgdTensor& tensor) {
  return is_aligned(tensor.parameter, FloatType::f32) &&
         is_aligned(tensor.gradient, tensor.gradient_type) &&
         is_aligned(tensor.velocity, FloatType::f32) &&
         is_aligned(tensor.average, FloatType::f32) &&
         is_aligned(tensor.working, tensor.working_type);
}

/// Calls run(constant V, i) for each i at which the thread reads V elements of the chunk. The
/// chunks' first elements are multiples of kSgdPack.
template <typename Run>
__device__ __forceinline__ void for_elements(const SgdChunk& chunk, std::int64_t count, bool packs,
                                             Run run) {
  const std::int64_t first = chunk.number * kSgdChunkSize;
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

/// The numbers of a step, for all elements of a tensor.
struct Update {
  SgdTensor tensor;
  float lr;
  float factor;
  float momentum;
  float average_share;
  bool nesterov;

  __device__ Update(const SgdTensor& of, const SgdStep& step)
      : tensor(of),
        lr(step.lr_on_device != nullptr ? *step.lr_on_device : step.lr),
        factor(unscaled_by(step.grad_scale) * (step.clip != nullptr ? *step.clip : 1)),
        momentum(step.momentum),
        average_share(1 - step.average_decay),
        nesterov(step.nesterov) {}

  template <int V>
  __device__ __forceinline__ void operator()(std::int64_t at) const {
    float parameter[V], gradient[V], velocity[V] = {}, average[V] = {};
    read(tensor.parameter, FloatType::f32, at, parameter);
    read(tensor.gradient, tensor.gradient_type, at, gradient);
    if (tensor.velocity != nullptr) read(tensor.velocity, FloatType::f32, at, velocity);
    if (tensor.average != nullptr) read(tensor.average, FloatType::f32, at, average);
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      float change = gradient[v] * factor + tensor.weight_decay * parameter[v];
      if (tensor.velocity != nullptr) {
        velocity[v] = momentum * velocity[v] + change;
        change = nesterov ? change + momentum * velocity[v] : velocity[v];
      }
      parameter[v] -= lr * change;
      average[v] += average_share * (parameter[v] - average[v]);
    }
    write(tensor.parameter, FloatType::f32, at, parameter);
    if (tensor.velocity != nullptr) write(tensor.velocity, FloatType::f32, at, velocity);
    if (tensor.average != nullptr) write(tensor.average, FloatType::f32, at, average);
    if (tensor.working != nullptr) write(tensor.working, tensor.working_type, at, parameter);
  }
};

__global__ void __launch_bounds__(kSgdThreads) sgd_kernel(SgdTable table, SgdStep step) {
  if (step.found_inf != nullptr && *step.found_inf != 0) return;
  const SgdChunk chunk = table.chunks[blockIdx.x];
  const Update update(table.tensors[chunk.tensor], step);
  for_elements(chunk, update.tensor.count, has_packs(update.tensor), update);
}

/// Sum of some squares, and how many of the values are not finite.
struct Squares {
  float sum;
  float not_finite;
};

/// The block's sum, in thread 0. The order of additions is that of the threads' numbers.
__device__ Squares sum_of_block(const Squares& mine) {
  PRECAST_SHARED(sums, Squares[kSgdThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  sums[thread] = mine;
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
      // The difference of a value that is not finite from itself is NaN.
      if (!(value - value == 0)) squares->not_finite = 1;
    }
  }
};

__global__ void __launch_bounds__(kSgdThreads)
    squares_kernel(SgdTable table, GradientNorm call, Squares* __restrict__ partial) {
  const SgdChunk chunk = table.chunks[blockIdx.x];
  const SgdTensor& tensor = table.tensors[chunk.tensor];
  Squares squares{0, 0};
  const SumSquares sum{tensor.gradient, tensor.gradient_type, unscaled_by(call.grad_scale),
                       &squares};
  for_elements(chunk, tensor.count, is_aligned(tensor.gradient, tensor.gradient_type), sum);
  squares = sum_of_block(squares);
  if (threadIdx.x == 0) partial[blockIdx.x] = squares;
}

/// One block, which adds the chunks' sums.
__global__ void __launch_bounds__(kSgdThreads)
    norm_kernel(const Squares* __restrict__ partial, int count, GradientNorm call) {
  Squares squares{0, 0};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kSgdThreads) {
    squares.sum += partial[i].sum;
    squares.not_finite += partial[i].not_finite;
  }
  squares = sum_of_block(squares);
  if (threadIdx.x != 0) return;
  const float norm = sqrtf(squares.sum);
  const float clip = call.max_norm / (norm + 1e-6F);
  *call.norm = norm;
  // A norm of NaN gives NaN, as in torch.
  *call.clip = clip > 1 ? 1 : clip;
  if (call.found_inf != nullptr) *call.found_inf = squares.not_finite > 0 ? 1 : 0;
}

std::size_t elements_of(const SgdTensor& tensor) {
  return static_cast<std::size_t>(tensor.count);
}

}  // namespace

std::vector<SgdChunk> sgd_chunks(std::span<const SgdTensor> tensors) {
  std::vector<SgdChunk> chunks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t numbers = (tensors[i].count + kSgdChunkSize - 1) / kSgdChunkSize;
    for (std::int64_t number = 0; number < numbers; ++number)
      chunks.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(number)});
  }
  return chunks;
}

void sgd_step(const SgdTable& table, const SgdStep& step, cudaStream_t stream) {
  if (table.chunk_count == 0) return;
  PRECAST_LAUNCH(sgd_kernel, static_cast<unsigned>(table.chunk_count), kSgdThreads, 0, stream,
                 table, step);
}

std::size_t gradient_norm_workspace_bytes(int chunk_count) {
  return sizeof(Squares) * static_cast<std::size_t>(chunk_count);
}

void gradient_norm(const SgdTable& table, const GradientNorm& call, cudaStream_t stream) {
  auto* const partial = static_cast<Squares*>(call.workspace);
  if (table.chunk_count > 0)
    PRECAST_LAUNCH(squares_kernel, static_cast<unsigned>(table.chunk_count), kSgdThreads, 0, stream,
                   table, call, partial);
  PRECAST_LAUNCH(norm_kernel, 1, kSgdThreads, 0, stream, partial, table.chunk_count, call);
}

std::size_t sgd_bytes(std::span<const SgdTensor> tensors) {
  std::size_t bytes = gradient_bytes(tensors);
  for (const SgdTensor& tensor : tensors) {
    std::size_t each = 2 * sizeof(float);
    if (tensor.velocity != nullptr) each += 2 * sizeof(float);
    if (tensor.average != nullptr) each += 2 * sizeof(float);
    if (tensor.working != nullptr) each += bytes_of(tensor.working_type);
    bytes += each * elements_of(tensor);
  }
  return bytes;
}

std::size_t gradient_bytes(std::span<const SgdTensor> tensors) {
  std::size_t bytes = 0;
  for (const SgdTensor& tensor : tensors)
    bytes += bytes_of(tensor.gradient_type) * elements_of(tensor);
  return bytes;
}

}  // namespace precast::recipes
