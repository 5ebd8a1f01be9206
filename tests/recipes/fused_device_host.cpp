#include "tests/recipes/fused_device.h"

namespace precast::test {
namespace {

template <auto kKernels, typename Shape, typename Call>
void launch(const at::Tensor& /*on*/, const Shape& shape, const Call& call) {
  kKernels(shape, call, nullptr);
}

}  // namespace

at::Device fused_device() {
  return at::kCPU;
}

std::string missing_fused_device() {
  return {};
}

const recipes::detail::FusedKernels& device_kernels() {
  static constexpr recipes::detail::FusedKernels kKernels = {
      .run_on = [](const at::Tensor& tensor) { return tensor.is_cpu(); },
      .cross_entropy_workspace_bytes = recipes::cross_entropy_workspace_bytes,
      .top_k_workspace_bytes = recipes::top_k_workspace_bytes,
      .cross_entropy = launch<recipes::cross_entropy>,
      .count_top_k = launch<recipes::count_top_k>,
      .sgd_step = launch<recipes::sgd_step>};
  return kKernels;
}

}  // namespace precast::test
