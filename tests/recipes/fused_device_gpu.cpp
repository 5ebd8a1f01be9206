#include <ATen/Context.h>

#include "tests/recipes/fused_device.h"

namespace precast::test {

at::Device fused_device() {
  return {at::kCUDA, 0};
}

std::string missing_fused_device() {
  return at::globalContext().hasCUDA() ? "" : "no GPU that libtorch can use";
}

const recipes::detail::FusedKernels& device_kernels() {
  return *recipes::detail::gpu_kernels();
}

}  // namespace precast::test
