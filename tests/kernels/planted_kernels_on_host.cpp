#include "tests/support/cuda_on_host.h"
// Must be included after cuda_on_host.h.
#include "framework/core/cuda_values.cuh"
#include "tests/kernels/planted_kernels.h"

namespace precast::test {
namespace {

constexpr unsigned kThreads = 256;
using Quad = Pack<float, 4>;

unsigned blocks_of(std::size_t threads) {
  return static_cast<unsigned>(threads / kThreads);
}
__device__ std::size_t thread_number() {
  return std::size_t{blockIdx.x} * kThreads + threadIdx.x;
}

__global__ void pack_kernel(const Quad* in, const Quad* unneeded, Quad* out) {
  Quad quad = in[thread_number()];
  // The values are used, because the compiler would remove the reads otherwise.
  if (unneeded != nullptr && unneeded[thread_number()].values[0] > 0) quad.values[0] += 1;
  if (unneeded != nullptr && unneeded[thread_number()].values[3] > 0) quad.values[1] += 1;
  out[thread_number()] = quad;
}

__global__ void memcpy_kernel(const float* in, float* out) {
  std::memcpy(out + 4 * thread_number(), in + 4 * thread_number(), 16);
}

__global__ void neighbours_kernel(const float* in, float* out) {
  PRECAST_SHARED(values, float[kThreads]);
  values[threadIdx.x] = in[thread_number()];
  __syncthreads();
  const float next = values[(threadIdx.x + 1) % kThreads];
  out[thread_number()] = next + in[thread_number()] + in[blockIdx.x * kThreads];
}

__global__ void sums_kernel(const float* in, float* sums) {
  atomicAdd(&sums[blockIdx.x], in[thread_number()]);
}

}  // namespace

void copy_by_packs(const float* in, const float* unneeded, float* out, std::size_t size) {
  PRECAST_LAUNCH(pack_kernel, blocks_of(size / 4), kThreads, 0, nullptr,
                 reinterpret_cast<const Quad*>(in), reinterpret_cast<const Quad*>(unneeded),
                 reinterpret_cast<Quad*>(out));
}

void copy_by_memcpy(const float* in, float* out, std::size_t size) {
  PRECAST_LAUNCH(memcpy_kernel, blocks_of(size / 4), kThreads, 0, nullptr, in, out);
}

void add_neighbours(const float* in, float* out, std::size_t size) {
  PRECAST_LAUNCH(neighbours_kernel, blocks_of(size), kThreads, 0, nullptr, in, out);
}

void add_up_blocks(const float* in, float* sums, std::size_t size) {
  PRECAST_LAUNCH(sums_kernel, blocks_of(size), kThreads, 0, nullptr, in, sums);
}

}  // namespace precast::test
