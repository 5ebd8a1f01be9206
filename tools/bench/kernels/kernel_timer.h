#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "tools/bench/kernels/kernel_case.h"

namespace precast::tools {

/// The times of a kernel and of a copy within GPU memory, measured alternately.
struct KernelTime {
  /// Microseconds per launch: one value per window.
  std::vector<double> us;
  /// Bytes that the copy read and wrote, in GB/s (10^9): one value per window.
  std::vector<double> copy_gb_per_s;
};

/// Times launches on the current GPU with CUDA events. @throws DeviceError
class KernelTimer {
 public:
  KernelTimer();

  /// Warms up, then alternates between a timed window of copies and a timed window of launches.
  /// @param windows at least 1.
  [[nodiscard]] KernelTime measure(const KernelCase& kernel, int windows);

 private:
  using Event = std::unique_ptr<CUevent_st, cudaError_t (*)(cudaEvent_t)>;
  using Launch = std::function<void(cudaStream_t)>;
  [[nodiscard]] double milliseconds(const Launch& launch, int launches);
  [[nodiscard]] int launches_in_a_window(const Launch& launch);

  std::unique_ptr<CUstream_st, cudaError_t (*)(cudaStream_t)> stream_;
  Event begin_, end_;
  std::shared_ptr<void> copy_from_, copy_to_;
};

}  // namespace precast::tools
