// Replaces the fused ops in builds without CUDA.
#include "framework/core/error.h"
#include "models/detail/fused_blur.h"
#include "models/detail/fused_dual_norm.h"
#include "models/detail/fused_max_pool.h"
#include "models/detail/fused_norm.h"
#include "models/detail/fused_norm_pool.h"
#include "models/detail/fused_stem.h"

namespace precast::models::detail {
namespace {

void fail() {
  require(false, "fused kernels run only where can_fuse() is true");
}

}  // namespace

bool has_fused_kernels() {
  return false;
}

bool fused_kernels_tested_on(at::Device /*device*/) {
  return false;
}

bool can_fuse(const at::Tensor& /*x*/) {
  return false;
}

Forked fused_norm(const at::Tensor& /*x*/, const at::Tensor& /*residual*/,
                  const FusedNorm& /*norm*/) {
  fail();
  return {};
}

Forked fused_dual_norm(const at::Tensor& /*x*/, const FusedNorm& /*norm*/,
                       const at::Tensor& /*shortcut*/, const FusedNorm& /*shortcut_norm*/) {
  fail();
  return {};
}

at::Tensor fused_blur(const at::Tensor& /*x*/) {
  fail();
  return {};
}

at::Tensor fused_blur_even(const at::Tensor& /*x*/) {
  fail();
  return {};
}

Blurred fused_blur_both(const at::Tensor& /*x*/) {
  fail();
  return {};
}

Forked fused_max_pool(const at::Tensor& /*x*/) {
  fail();
  return {};
}

Forked fused_norm_pool(const at::Tensor& /*x*/, const FusedNorm& /*norm*/) {
  fail();
  return {};
}

bool can_fuse_stem(const at::Tensor& /*images*/) {
  return false;
}

at::Tensor stem_images(const at::Tensor& /*images*/) {
  fail();
  return {};
}

at::Tensor stem_weight(const at::Tensor& /*weight*/) {
  fail();
  return {};
}

}  // namespace precast::models::detail
