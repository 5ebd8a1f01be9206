#include "models/detail/batch_norm.h"

#include <ATen/core/grad_mode.h>

#include "models/detail/rank_batch_norm.h"

namespace precast::models::detail {

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& input) {
  if (ranks_ == nullptr || !is_training()) return torch::nn::BatchNorm2dImpl::forward(input);
  {
    const at::NoGradGuard no_grad;
    num_batches_tracked.add_(1);
  }
  const RankBatchNorm norm = {.weight = weight,
                              .bias = bias,
                              .running_mean = running_mean,
                              .running_var = running_var,
                              .momentum = options.momentum().value(),
                              .eps = options.eps(),
                              .ranks = ranks_};
  return input.is_cuda() ? rank_batch_norm_cuda(input, norm) : rank_batch_norm(input, norm);
}

}  // namespace precast::models::detail
