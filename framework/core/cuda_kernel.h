#pragma once

// Macros for launching kernels and for shared memory. Each .cu file uses them in place of <<<>>>
// and __shared__, so that the same source compiles in two ways: nvcc compiles it to GPU kernels,
// and tests compile it for the host, where tests/support/cuda_on_host.h runs every thread of a
// block as a fiber. Do not include libtorch here.
//
//   PRECAST_LAUNCH(kernel, grid, block, shared_bytes, stream, arguments...)
//     kernel<<<grid, block, shared_bytes, stream>>>(arguments...). There must be at least one
//     argument. Write kernel<A, B> in parentheses.
//   PRECAST_SHARED(name, type)
//     Uninitialised static shared memory of a block: PRECAST_SHARED(sums, float[8][2]).
//   PRECAST_DYNAMIC_SHARED(name, type)
//     A `type*` to the launch's shared_bytes, aligned to 16 bytes. Use it at most once per kernel.
//   PRECAST_BOUNDS(threads, blocks)
//     __launch_bounds__: nvcc limits registers so that `blocks` blocks fit on a multiprocessor.
//     Write it between __global__ and void.
//   PRECAST_UNROLL
//     Write it before a loop with a constant number of iterations: nvcc then unrolls the loop.

#include <cstdint>

namespace precast {

/// Lets an array type be written before a variable's name.
template <typename T>
using SharedMemory = T;

}  // namespace precast

#ifdef __CUDACC__
#define PRECAST_UNROLL _Pragma("unroll")
#define PRECAST_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define PRECAST_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__)
#define PRECAST_SHARED(name, ...) __shared__ ::precast::SharedMemory<__VA_ARGS__> name
#define PRECAST_DYNAMIC_SHARED(name, ...)                       \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  auto* const name = reinterpret_cast<::precast::SharedMemory<__VA_ARGS__>*>(name##_bytes)
#else
#define PRECAST_UNROLL
#define PRECAST_BOUNDS(threads, blocks)
#define PRECAST_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ::precast::cuda_on_host::launch(kernel, grid, block, shared_bytes, stream, __VA_ARGS__)
#define PRECAST_SHARED(name, ...)                   \
  static ::precast::SharedMemory<__VA_ARGS__> name; \
  static std::uint64_t name##_poisoned_for;         \
  ::precast::cuda_on_host::poison_once_per_block(&name, sizeof name, name##_poisoned_for)
#define PRECAST_DYNAMIC_SHARED(name, ...)                                \
  auto* const name = static_cast<::precast::SharedMemory<__VA_ARGS__>*>( \
      ::precast::cuda_on_host::dynamic_shared_memory())
#endif
