#include "tools/bench/kernels/kernel_timer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

constexpr double kWarmUpMs = 200;
constexpr double kWindowMs = 30;
constexpr int kMaxLaunches = 10000;
/// Several times the L2 cache of any GPU.
constexpr std::size_t kCopyBytes = std::size_t{512} << 20;

cudaStream_t create_stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

cudaEvent_t create_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

std::shared_ptr<void> allocated(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), fmt::format("cudaMalloc of {} bytes", bytes));
  return {memory, [](void* of) { cudaFree(of); }};
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  throw DeviceError(
      fmt::format("GPU: expected {} to succeed, got: {}", call, cudaGetErrorString(status)));
}

std::shared_ptr<void> gpu_memory(std::size_t bytes) {
  std::shared_ptr<void> owner = allocated(bytes);
  // A GPU moves and multiplies zeros with less power than other values, and therefore faster.
  std::vector<std::uint32_t> pattern((16 << 20) / sizeof(std::uint32_t) + 1);
  std::uint32_t value = 1;
  for (std::uint32_t& of : pattern) of = value = value * 1664525u + 1013904223u;
  for (std::size_t at = 0; at < bytes; at += pattern.size() * sizeof(std::uint32_t)) {
    const std::size_t part = std::min(bytes - at, pattern.size() * sizeof(std::uint32_t));
    check_cuda(cudaMemcpy(static_cast<char*>(owner.get()) + at, pattern.data(), part,
                          cudaMemcpyHostToDevice),
               "cudaMemcpy");
  }
  return owner;
}

std::shared_ptr<void> gpu_copy(const void* from, std::size_t bytes) {
  std::shared_ptr<void> owner = allocated(bytes);
  check_cuda(cudaMemcpy(owner.get(), from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return owner;
}

KernelTimer::KernelTimer()
    : stream_(create_stream(), &cudaStreamDestroy),
      begin_(create_event(), &cudaEventDestroy),
      end_(create_event(), &cudaEventDestroy),
      copy_from_(gpu_memory(kCopyBytes)),
      copy_to_(gpu_memory(kCopyBytes)) {}

double KernelTimer::milliseconds(const Launch& launch, int launches) {
  check_cuda(cudaEventRecord(begin_.get(), stream_.get()), "cudaEventRecord");
  for (int i = 0; i < launches; ++i) launch(stream_.get());
  check_cuda(cudaGetLastError(), "the launch");
  check_cuda(cudaEventRecord(end_.get(), stream_.get()), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(end_.get()), "the kernel");
  float elapsed_ms = 0;
  check_cuda(cudaEventElapsedTime(&elapsed_ms, begin_.get(), end_.get()), "cudaEventElapsedTime");
  return double{elapsed_ms};
}

int KernelTimer::launches_in_a_window(const Launch& launch) {
  double spent_ms = milliseconds(launch, 1);
  double once_ms = spent_ms;
  while (spent_ms < kWarmUpMs) {
    const int launches =
        std::clamp(static_cast<int>(20 / std::max(once_ms, 1e-3)), 1, kMaxLaunches);
    const double batch_ms = milliseconds(launch, launches);
    once_ms = batch_ms / launches;
    spent_ms += std::max(batch_ms, 1.0);
  }
  return std::clamp(static_cast<int>(std::ceil(kWindowMs / std::max(once_ms, 1e-3))), 1,
                    kMaxLaunches);
}

KernelTime KernelTimer::measure(const KernelCase& kernel, int windows) {
  const Launch copy = [this](cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(copy_to_.get(), copy_from_.get(), kCopyBytes,
                               cudaMemcpyDeviceToDevice, stream),
               "the copy");
  };
  const int copies = launches_in_a_window(copy);
  const int launches = launches_in_a_window(kernel.launch);
  KernelTime time;
  for (int w = 0; w < windows; ++w) {
    const double copy_seconds = milliseconds(copy, copies) / 1e3;
    time.copy_gb_per_s.push_back(2e-9 * static_cast<double>(kCopyBytes) * copies / copy_seconds);
    time.us.push_back(milliseconds(kernel.launch, launches) * 1e3 / launches);
  }
  return time;
}

}  // namespace precast::tools
