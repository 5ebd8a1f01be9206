#include "tests/models/fused_device.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/max.h>
#include <gtest/gtest.h>

namespace precast::test {
namespace {

using models::detail::FusedKernels;

FusedCalls counts;

bool has_fork(const models::BatchNormBackward& call) {
  return call.dy_fork != nullptr;
}
bool has_fork(const models::BlurBackward& call) {
  return call.dy != nullptr && call.dy_even != nullptr;
}
bool has_fork(const models::MaxPoolBackward& call) {
  return call.dy_fork != nullptr;
}
bool has_fork(const models::NormPoolBackward& call) {
  return call.norm.dy_fork != nullptr;
}
bool has_fork(const models::DualNormBackward& call) {
  return call.norm.dy_fork != nullptr;
}
template <typename Call>
bool has_fork(const Call& /*call*/) {
  return false;
}

/// device_kernels().*kLaunch, counted.
template <auto kLaunch, auto kCount, typename Shape, typename Call>
void counted(const at::Tensor& on, const Shape& shape, const Call& call) {
  ++(counts.*kCount);
  if (has_fork(call)) ++counts.forks;
  (device_kernels().*kLaunch)(on, shape, call);
}

FusedKernels counted_kernels() {
  FusedKernels kernels = device_kernels();
  kernels.norm_forward = counted<&FusedKernels::norm_forward, &FusedCalls::norm_forward>;
  kernels.norm_backward = counted<&FusedKernels::norm_backward, &FusedCalls::norm_backward>;
  kernels.blur_forward = counted<&FusedKernels::blur_forward, &FusedCalls::blur_forward>;
  kernels.blur_backward = counted<&FusedKernels::blur_backward, &FusedCalls::blur_backward>;
  kernels.max_pool_forward =
      counted<&FusedKernels::max_pool_forward, &FusedCalls::max_pool_forward>;
  kernels.max_pool_backward =
      counted<&FusedKernels::max_pool_backward, &FusedCalls::max_pool_backward>;
  kernels.norm_pool_forward =
      counted<&FusedKernels::norm_pool_forward, &FusedCalls::norm_pool_forward>;
  kernels.norm_pool_backward =
      counted<&FusedKernels::norm_pool_backward, &FusedCalls::norm_pool_backward>;
  kernels.dual_norm_forward =
      counted<&FusedKernels::dual_norm_forward, &FusedCalls::dual_norm_forward>;
  kernels.dual_norm_backward =
      counted<&FusedKernels::dual_norm_backward, &FusedCalls::dual_norm_backward>;
  kernels.stem_input = counted<&FusedKernels::stem_input, &FusedCalls::stem_input>;
  return kernels;
}

}  // namespace

at::Tensor channels_last(const at::Tensor& tensor, at::ScalarType type) {
  return tensor.to(fused_device(), type).contiguous(at::MemoryFormat::ChannelsLast);
}

double rounding(at::ScalarType type) {
  if (type == at::kHalf) return 0x1p-11;
  return type == at::kBFloat16 ? 0x1p-8 : 0x1p-24;
}

void expect_close(const char* what, const at::Tensor& found, const at::Tensor& expected,
                  double relative, double absolute) {
  const at::Tensor there = found.detach().to(at::kCPU, at::kDouble);
  const at::Tensor bound = expected.detach().abs() * relative + absolute;
  const at::Tensor excess = (there - expected.detach()).abs() - bound;
  EXPECT_LE(excess.max().item<double>(), 0) << what;
}

CountedKernels::CountedKernels() {
  static const FusedKernels kernels = counted_kernels();
  models::detail::set_fused_kernels(&kernels);
  reset();
}

CountedKernels::~CountedKernels() {
  models::detail::set_fused_kernels(models::detail::gpu_kernels());
}

const FusedCalls& CountedKernels::calls() {
  return counts;
}

void CountedKernels::reset() {
  counts = {};
}

}  // namespace precast::test
