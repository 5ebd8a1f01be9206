#include <vector>

#include "tests/recipes/fused_device.h"
#include "tests/support/tape_recorder.h"

namespace precast::test {
namespace {

template <auto kKernels, typename Shape, typename Call>
void launch(const at::Tensor& /*on*/, const Shape& shape, const Call& call) {
  kKernels(shape, call, nullptr);
}

/// Like a launch on a GPU: a recording keeps the arguments, and replays the launch with them.
template <auto kKernels, typename Call>
void launch_sgd(const at::Tensor& /*on*/, const recipes::SgdTensors& tensors, const Call& call) {
  const std::vector<recipes::SgdTensor> arguments(tensors.begin(), tensors.end());
  const auto run = [=] { kKernels(arguments, call, nullptr); };
  if (!TapeRecorder::record_launch(run)) run();
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
      .supports = [](const at::Tensor& tensor) { return tensor.is_cpu(); },
      .cross_entropy_workspace_bytes = recipes::cross_entropy_workspace_bytes,
      .top_k_workspace_bytes = recipes::top_k_workspace_bytes,
      .gradient_norm_workspace_bytes = recipes::gradient_norm_workspace_bytes,
      .cross_entropy = launch<recipes::cross_entropy>,
      .count_top_k = launch<recipes::count_top_k>,
      .gradient_norm = launch_sgd<recipes::gradient_norm>,
      .sgd_step = launch_sgd<recipes::sgd_step>};
  return kKernels;
}

}  // namespace precast::test
