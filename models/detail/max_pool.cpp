#include "models/detail/max_pool.h"

#include <ATen/ops/max_pool2d.h>

#include "models/detail/fused_max_pool.h"

namespace precast::models::detail {

Forked MaxPool2dImpl::forward_fork(const at::Tensor& x) {
  if (fuses(x)) return fused_max_pool(x);
  const at::Tensor y =
      at::max_pool2d(x, {kernel_, kernel_}, {stride_, stride_}, {padding_, padding_});
  return {y, y};
}

}  // namespace precast::models::detail
