#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <stdexcept>

#include "tests/support/kernel_device.h"

namespace precast::test {
namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

}  // namespace

std::string missing_device() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return {};
  return fmt::format("no GPU: {}",
                     status == cudaSuccess ? "the driver sees none" : cudaGetErrorString(status));
}

std::shared_ptr<void> device_memory(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  std::shared_ptr<void> owner(memory, [](void* of) { cudaFree(of); });
  check(cudaMemset(memory, 0xff, bytes), "cudaMemset");
  return owner;
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

void copy_from_device(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void in_several_orders(const std::function<void()>& launches) {
  // The order of threads on a GPU cannot be chosen, but it may differ from run to run.
  for (int run = 0; run < 3; ++run) {
    launches();
    check(cudaGetLastError(), "kernel launch");
    check(cudaDeviceSynchronize(), "kernel");
  }
}

}  // namespace precast::test
