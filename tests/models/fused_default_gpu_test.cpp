#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "models/detail/fused_norm.h"
#include "tests/models/fused_device.h"

namespace precast::test {
namespace {

using models::detail::fused_kernels_tested_on;

TEST(FusedDefaultTest, KernelsAreTestedOnComputeCapability9) {
  if (const std::string reason = missing_fused_device(); !reason.empty()) GTEST_SKIP() << reason;
  const cudaDeviceProp& gpu = *at::cuda::getDeviceProperties(0);
  EXPECT_EQ(fused_kernels_tested_on(at::Device(at::kCUDA, 0)), gpu.major == 9 && gpu.minor == 0);
  EXPECT_EQ(fused_kernels_tested_on(at::kCUDA), fused_kernels_tested_on(at::Device(at::kCUDA, 0)));
  EXPECT_FALSE(fused_kernels_tested_on(at::kCPU));
  EXPECT_FALSE(fused_kernels_tested_on(at::Device(at::kCUDA, c10::cuda::device_count())));
}

}  // namespace
}  // namespace precast::test
