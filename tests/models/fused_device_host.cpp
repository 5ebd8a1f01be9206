#include "tests/models/fused_device.h"

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

const models::detail::FusedKernels& device_kernels() {
  static constexpr models::detail::FusedKernels kKernels = {
      .supports = [](const at::Tensor& x) { return x.is_cpu(); },
      .norm_mask_bytes = models::batch_norm_mask_bytes,
      .norm_workspace_bytes = models::batch_norm_workspace_bytes,
      .norm_forward = launch<models::batch_norm_forward>,
      .norm_backward = launch<models::batch_norm_backward>,
      .blur_forward = launch<models::blur_forward>,
      .blur_backward = launch<models::blur_backward>,
      .max_pool_forward = launch<models::max_pool_forward>,
      .max_pool_backward = launch<models::max_pool_backward>,
      .norm_pool_forward = launch<models::norm_pool_forward>,
      .norm_pool_backward = launch<models::norm_pool_backward>,
      .dual_norm_forward = launch<models::dual_norm_forward>,
      .dual_norm_backward = launch<models::dual_norm_backward>,
      .stem_input = launch<models::stem_input>};
  return kKernels;
}

}  // namespace precast::test
