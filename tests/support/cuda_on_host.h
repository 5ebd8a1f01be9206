#pragma once

// Compiles and runs CUDA kernels on the host, to test them without a GPU. A source of a test
// includes this header, then the .cu file (whose kernels are launched by the macros of
// framework/core/cuda_kernel.h); the host functions of the .cu file then run on host memory.
//
// Each thread of a block is a fiber. Between barriers, threads run one after another. Their order
// and the order of the blocks are drawn from a seed, so a missing barrier makes results depend on
// the seed. Atomics also let other threads run. Shared memory is filled with bytes 0xff (NaN as a
// float of any width, -1 as an integer) before each block. Blocks run one after another, so a
// kernel whose blocks wait for each other fails if it waits with atomics, and otherwise never ends.
//
// A build with AddressSanitizer reports accesses outside an array, including in shared memory. A
// build with ThreadSanitizer reports races within a block, where only __syncthreads and __syncwarp
// order accesses. Not thread-safe; launches must not nest.
//
// Available are: __syncthreads, __syncthreads_{or,and,count}, __syncwarp,
// __shfl{,_up,_down,_xor}_sync, __ballot_sync, __any_sync, __all_sync, __threadfence, atomicAdd,
// atomicMax, __ldg, rsqrtf, and what the CUDA headers provide for the host (float16, bfloat16,
// vector types).

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "framework/core/cuda_kernel.h"

#undef __device__
#undef __forceinline__
#undef __global__
#undef __launch_bounds__
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(...)

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;

namespace precast::cuda_on_host {

/// A launch or a kernel that a GPU would reject, or that would hang or give undefined results on
/// it. For barriers and warp operations, the message names threads and source lines.
class KernelFault : public std::runtime_error {
 public:
  enum class Kind {
    launch,             ///< sizes that no GPU supports
    missing_threads,    ///< some threads do not reach the barrier or warp operation of the others
    divergent_barrier,  ///< threads wait at different barriers
    warp_operation,     ///< a mask without its caller, or different operations in one warp
    spinning,           ///< threads repeat atomics, and none makes progress
    exception,          ///< the kernel threw
  };
  KernelFault(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// Chooses the order of blocks and threads of the launches that follow.
void set_thread_order(std::uint64_t seed);

/// Sets a function that is called after each launch that succeeds; an empty function removes it.
/// For tests that count what a launch does.
void set_launch_observer(std::function<void()> observer);

/// Runs `thread` once for each thread of each block. @throws KernelFault
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);

/// The function that PRECAST_LAUNCH calls; each thread receives a copy of the arguments. @throws
/// KernelFault
template <typename Stream, typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            const Stream& /*stream*/, const Arguments&... arguments) {
  const std::tuple<Parameters...> parameters(arguments...);
  run_grid(grid, block, shared_bytes, [&] { std::apply(kernel, parameters); });
}

/// Fills the memory with bytes 0xff unless this block has already done so. @param poisoned_for the
/// number of the block for which the memory was last filled.
void poison_once_per_block(void* memory, std::size_t bytes, std::uint64_t& poisoned_for);
[[nodiscard]] void* dynamic_shared_memory();

/// Waits for every thread of the block. @return the number of threads whose predicate holds.
int wait_for_block(bool predicate, std::source_location where);
void wait_for_warp(unsigned mask, std::source_location where);
/// Returns the bits of the lanes whose predicate holds.
unsigned ballot(unsigned mask, bool predicate, std::source_location where);
/// Returns the bits that lane `source` sends; all ones if it has returned or is not in the mask.
std::uint64_t shuffle(unsigned mask, std::uint64_t bits, unsigned source,
                      std::source_location where);
[[nodiscard]] unsigned lane();
/// Allows other threads of the block to run before the calling thread continues.
void yield();

template <typename T>
T shuffle_value(unsigned mask, T value, unsigned source, std::source_location where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle(mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace precast::cuda_on_host

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's.

#define PRECAST_WHERE std::source_location where = std::source_location::current()

inline void __syncthreads(PRECAST_WHERE) {
  precast::cuda_on_host::wait_for_block(false, where);
}
inline int __syncthreads_count(int predicate, PRECAST_WHERE) {
  return precast::cuda_on_host::wait_for_block(predicate != 0, where);
}
inline int __syncthreads_or(int predicate, PRECAST_WHERE) {
  return precast::cuda_on_host::wait_for_block(predicate != 0, where) > 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate, PRECAST_WHERE) {
  return precast::cuda_on_host::wait_for_block(predicate == 0, where) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = ~0u, PRECAST_WHERE) {
  precast::cuda_on_host::wait_for_warp(mask, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, PRECAST_WHERE) {
  return precast::cuda_on_host::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate, PRECAST_WHERE) {
  return precast::cuda_on_host::ballot(mask, predicate != 0, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, PRECAST_WHERE) {
  return precast::cuda_on_host::ballot(mask, predicate == 0, where) == 0 ? 1 : 0;
}

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, PRECAST_WHERE) {
  const unsigned in_group = static_cast<unsigned>(width) - 1;
  const unsigned first = precast::cuda_on_host::lane() & ~in_group;
  const unsigned from = first | (static_cast<unsigned>(source) & in_group);
  return precast::cuda_on_host::shuffle_value(mask, value, from, where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, PRECAST_WHERE) {
  const unsigned lane = precast::cuda_on_host::lane();
  const unsigned position = lane & (static_cast<unsigned>(width) - 1);
  const unsigned from = position >= delta ? lane - delta : lane;
  return precast::cuda_on_host::shuffle_value(mask, value, from, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, PRECAST_WHERE) {
  const unsigned lane = precast::cuda_on_host::lane();
  const unsigned position = lane & (static_cast<unsigned>(width) - 1);
  const unsigned from = position + delta < static_cast<unsigned>(width) ? lane + delta : lane;
  return precast::cuda_on_host::shuffle_value(mask, value, from, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, PRECAST_WHERE) {
  const unsigned lane = precast::cuda_on_host::lane();
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  const unsigned from = lane ^ static_cast<unsigned>(lane_mask);
  return precast::cuda_on_host::shuffle_value(mask, value, from <= last ? from : lane, where);
}
#undef PRECAST_WHERE

template <typename T>
T atomicAdd(T* to, std::type_identity_t<T> value) {
  precast::cuda_on_host::yield();
  return std::atomic_ref<T>(*to).fetch_add(value, std::memory_order_relaxed);
}
template <typename T>
T atomicMax(T* to, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>);
  precast::cuda_on_host::yield();
  std::atomic_ref<T> target(*to);
  T old = target.load(std::memory_order_relaxed);
  while (old < value && !target.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}
/// Does nothing: all threads of the GPU run on one thread of the host.
inline void __threadfence() {}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
inline float rsqrtf(float value) {
  return 1.0f / std::sqrt(value);
}

// NOLINTEND(bugprone-reserved-identifier)
