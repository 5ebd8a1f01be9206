#pragma once

#include <c10/core/Device.h>

#include <string>

#include "recipes/detail/fused_kernels.h"

namespace precast::test {

// Where the tests of fused losses, metrics and optimisers run. They are written once and built
// twice: fused_recipes_test runs the kernels on the host (fused_device_host.cpp, see
// cuda_on_host.h), recipes_gpu_test on the first GPU (fused_device_gpu.cpp).

[[nodiscard]] at::Device fused_device();
/// Why no kernel can run here; empty if one can.
[[nodiscard]] std::string missing_fused_device();
[[nodiscard]] const recipes::detail::FusedKernels& device_kernels();

/// The numbers of calls of the kernels.
struct FusedCalls {
  int cross_entropy = 0, count_top_k = 0, gradient_norm = 0, sgd_step = 0;

  bool operator==(const FusedCalls&) const = default;
};

/// While this object exists, fused ops use device_kernels(), and their calls are counted.
class CountedKernels {
 public:
  CountedKernels();
  CountedKernels(const CountedKernels&) = delete;
  CountedKernels& operator=(const CountedKernels&) = delete;
  ~CountedKernels();

  /// Calls since construction or reset().
  [[nodiscard]] static const FusedCalls& calls();
  static void reset();
};

}  // namespace precast::test
