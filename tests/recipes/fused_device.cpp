#include "tests/recipes/fused_device.h"

namespace precast::test {
namespace {

using recipes::detail::FusedKernels;

FusedCalls counts;

/// device_kernels().*kLaunch, counted.
template <auto kLaunch, auto kCount, typename Shape, typename Call>
void counted(const at::Tensor& on, const Shape& shape, const Call& call) {
  ++(counts.*kCount);
  (device_kernels().*kLaunch)(on, shape, call);
}

FusedKernels counted_kernels() {
  FusedKernels kernels = device_kernels();
  kernels.cross_entropy = counted<&FusedKernels::cross_entropy, &FusedCalls::cross_entropy>;
  kernels.count_top_k = counted<&FusedKernels::count_top_k, &FusedCalls::count_top_k>;
  kernels.gradient_norm = counted<&FusedKernels::gradient_norm, &FusedCalls::gradient_norm>;
  kernels.sgd_step = counted<&FusedKernels::sgd_step, &FusedCalls::sgd_step>;
  return kernels;
}

}  // namespace

CountedKernels::CountedKernels() {
  static const FusedKernels kernels = counted_kernels();
  recipes::detail::set_fused_kernels(&kernels);
  reset();
}

CountedKernels::~CountedKernels() {
  recipes::detail::set_fused_kernels(recipes::detail::gpu_kernels());
}

const FusedCalls& CountedKernels::calls() {
  return counts;
}

void CountedKernels::reset() {
  counts = {};
}

}  // namespace precast::test
