#include "models/detail/batch_norm.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/chunk.h>
#include <fmt/format.h>

#include "framework/core/error.h"
#include "models/detail/fused_dual_norm.h"
#include "models/detail/fused_norm_pool.h"
#include "models/detail/sync_batch_norm.h"

namespace precast::models::detail {

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& input) {
  if (fuses(input)) return fused_norm(input, /*residual=*/{}, fused_norm_of(/*relu=*/false)).y;
  const std::int64_t chunks =
      ghost_batch_size_ == 0 ? 1 : (input.size(0) + ghost_batch_size_ - 1) / ghost_batch_size_;
  if (!is_training() || (ranks_ == nullptr && chunks <= 1))
    return torch::nn::BatchNorm2dImpl::forward(input);
  count_batch();
  if (ranks_ == nullptr) return normalize_chunks(input, chunks);
  const SyncBatchNorm norm = {.weight = weight,
                              .bias = bias,
                              .running_mean = running_mean,
                              .running_var = running_var,
                              .momentum = options.momentum().value(),
                              .eps = options.eps(),
                              .ranks = ranks_};
  return input.is_cuda() ? sync_batch_norm_cuda(input, norm) : sync_batch_norm(input, norm);
}

Forked BatchNorm2dImpl::forward_relu_fork(const at::Tensor& input, const at::Tensor& residual) {
  if (fuses(input)) return fused_norm(input, residual, fused_norm_of(/*relu=*/true));
  at::Tensor output = forward(input);
  if (residual.defined()) output.add_(residual);
  output.relu_();
  return {output, output};
}

Forked BatchNorm2dImpl::forward_relu_fork(const at::Tensor& input, const at::Tensor& shortcut,
                                          BatchNorm2dImpl& norm) {
  if (fuses(input) && norm.fuses(shortcut) && input.scalar_type() == shortcut.scalar_type())
    return fused_dual_norm(input, fused_norm_of(/*relu=*/true), shortcut,
                           norm.fused_norm_of(/*relu=*/true));
  return forward_relu_fork(input, norm.forward(shortcut));
}

Forked BatchNorm2dImpl::forward_relu_pool(const at::Tensor& input, MaxPool2d pool) {
  if (fuses(input) && pool->fuses(input))
    return fused_norm_pool(input, fused_norm_of(/*relu=*/true));
  return pool->forward_fork(forward_relu(input));
}

bool BatchNorm2dImpl::fuses(const at::Tensor& input) const {
  return unfused_reason_.empty() && is_training() && can_fuse(input) &&
         weight.scalar_type() == at::kFloat && options.momentum().has_value();
}

FusedNorm BatchNorm2dImpl::fused_norm_of(bool relu) const {
  return {.weight = weight,
          .bias = bias,
          .running_mean = running_mean,
          .running_var = running_var,
          .num_batches_tracked = num_batches_tracked,
          .momentum = options.momentum().value(),
          .eps = options.eps(),
          .relu = relu};
}

void BatchNorm2dImpl::fuse() {
  unfused_reason_ = ranks_ != nullptr       ? "dist.sync_bn"
                    : ghost_batch_size_ > 0 ? "ghost_batch_norm"
                                            : "";
}

void BatchNorm2dImpl::count_batch() {
  const at::NoGradGuard no_grad;
  num_batches_tracked.add_(1);
}

at::Tensor BatchNorm2dImpl::normalize_chunks(const at::Tensor& input, std::int64_t chunks) const {
  std::vector<at::Tensor> parts = input.chunk(chunks, 0);
  // at::chunk() may return fewer chunks than requested.
  const double momentum = options.momentum().value() / static_cast<double>(parts.size());
  for (at::Tensor& part : parts) {
    if (part.numel() <= part.size(1)) {
      // Not ConfigError, after which a grid would also stop its other trials.
      throw Error(fmt::format(
          "method ghost_batch_norm: expected more than one value per channel in each chunk, got "
          "activations of {} px and a chunk with 1 of the {} samples. Increase the option size, or "
          "use larger images",
          part.size(2), input.size(0)));
    }
    part = at::batch_norm(part, weight, bias, running_mean, running_var, /*training=*/true,
                          momentum, options.eps(), at::globalContext().userEnabledCuDNN());
  }
  return at::cat(parts);
}

}  // namespace precast::models::detail
