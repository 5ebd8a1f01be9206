// In builds without CUDA.
#include "framework/core/error.h"
#include "recipes/detail/fused_logits.h"

namespace precast::recipes::detail {
namespace {

void fail() {
  require(false, "fused kernels run only where can_fuse() is true");
}

}  // namespace

bool can_fuse(const at::Tensor& /*logits*/, const at::Tensor& /*labels*/) {
  return false;
}

at::Tensor fused_cross_entropy(const at::Tensor& /*logits*/, const at::Tensor& /*labels*/,
                               double /*label_smoothing*/) {
  fail();
  return {};
}

at::Tensor fused_top_k(const at::Tensor& /*logits*/, const at::Tensor& /*labels*/,
                       std::int64_t /*k*/) {
  fail();
  return {};
}

}  // namespace precast::recipes::detail
