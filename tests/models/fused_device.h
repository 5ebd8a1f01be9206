#pragma once

#include <c10/core/Device.h>

#include <string>

#include "models/detail/fused_kernels.h"

namespace precast::test {

// Where the tests of fused ops run. They are written once and built twice: fused_test runs the
// kernels on the host (fused_device_host.cpp, see cuda_on_host.h), models_gpu_test on the first GPU
// (fused_device_gpu.cpp).

[[nodiscard]] at::Device fused_device();
/// Why no kernel can run here; empty if one can.
[[nodiscard]] std::string missing_fused_device();
[[nodiscard]] const models::detail::FusedKernels& device_kernels();

/// Returns the values of `tensor` on the device, in channels-last layout and with the given type.
[[nodiscard]] at::Tensor channels_last(const at::Tensor& tensor, at::ScalarType type);
/// The largest relative error of rounding to the type.
[[nodiscard]] double rounding(at::ScalarType type);

/// Expects that each value differs by at most `relative` times its magnitude, plus `absolute`.
/// @param expected float64, on the CPU
void expect_close(const char* what, const at::Tensor& found, const at::Tensor& expected,
                  double relative, double absolute);

/// The numbers of calls of the kernels.
struct FusedCalls {
  int norm_forward = 0, norm_backward = 0;
  int blur_forward = 0, blur_backward = 0;
  int max_pool_forward = 0, max_pool_backward = 0;
  int norm_pool_forward = 0, norm_pool_backward = 0;
  int dual_norm_forward = 0, dual_norm_backward = 0;
  int stem_input = 0;
  /// Backward calls with the gradients of two consumers.
  int forks = 0;

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
