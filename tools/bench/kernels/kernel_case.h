#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace precast::tools {

/// A kernel with its inputs on the GPU, ready to be launched repeatedly.
struct KernelCase {
  /// Sizes and types, for display.
  std::string shape;
  /// The bytes that the kernel must read and write; a byte that it accesses several times counts
  /// once. If `launch` launches several kernels, this is the sum over them. It must be several
  /// times the size of the GPU's L2 cache, so that the memory determines the time.
  std::size_t bytes_moved = 0;
  /// Launches the kernel asynchronously on the stream. Owns the GPU memory.
  std::function<void(cudaStream_t)> launch;
};

struct KernelEntry {
  std::string_view name;
  /// Allocates and fills the inputs. @throws DeviceError
  KernelCase (*make)();
};

/// Every kernel that kernel_bench times: one entry each in kernel_list.cpp.
[[nodiscard]] std::span<const KernelEntry> kernel_list();

/// Allocates GPU memory and fills it with pseudorandom bytes. @throws DeviceError
[[nodiscard]] std::shared_ptr<void> gpu_memory(std::size_t bytes);
/// Copies host memory to new GPU memory. @throws DeviceError
[[nodiscard]] std::shared_ptr<void> gpu_copy(const void* from, std::size_t bytes);

/// @throws DeviceError with the name of the call if it failed.
void check_cuda(cudaError_t status, std::string_view call);

}  // namespace precast::tools
