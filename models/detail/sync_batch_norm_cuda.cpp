// The operators below exist only for GPUs, but are called through libtorch's dispatcher, so this
// file compiles and links without CUDA.
#include <ATen/ops/batch_norm_backward_elemt.h>
#include <ATen/ops/batch_norm_backward_reduce.h>
#include <ATen/ops/batch_norm_elemt.h>
#include <ATen/ops/batch_norm_gather_stats_with_counts.h>
#include <ATen/ops/batch_norm_stats.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "framework/core/error.h"
#include "models/detail/sync_batch_norm.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Gathers every rank's `row` [n] into [world, n]. Communicator cannot gather tensors, so this sums
/// tensors in which each rank fills only its own row. A dedicated collective would not be faster:
/// latency dominates for messages of a few kilobytes.
at::Tensor gather_rows(const at::Tensor& row, Communicator& ranks) {
  const at::Tensor rows = at::zeros({ranks.world(), row.numel()}, row.options());
  rows.select(0, ranks.rank()).copy_(row);
  ranks.all_reduce_sum({rows});
  return rows;
}

class KernelNormalize : public torch::autograd::Function<KernelNormalize> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input, const Variable& weight,
                          const Variable& bias, const SyncBatchNorm& norm) {
    const at::Tensor x = input.contiguous(input.suggest_memory_format());
    const std::int64_t channels = x.size(1);
    const auto [own_mean, own_inverse_std] = at::batch_norm_stats(x, norm.eps);
    const at::Tensor own_count = at::full({1}, x.numel() / channels, own_mean.options());
    // [world, 2C + 1]. A rank's count is exact in float32 up to 16.7 million values per channel.
    const at::Tensor rows =
        gather_rows(at::cat({own_mean, own_inverse_std, own_count}), *norm.ranks);
    const at::Tensor counts = rows.select(1, 2 * channels);
    const auto [mean, inverse_std] = at::batch_norm_gather_stats_with_counts(
        x, rows.narrow(1, 0, channels), rows.narrow(1, channels, channels), norm.running_mean,
        norm.running_var, norm.momentum, norm.eps, counts.to(norm.running_mean.scalar_type()));
    context->save_for_backward({x, weight, mean, inverse_std, counts.to(at::kInt).contiguous()});
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(norm.ranks);
    return at::batch_norm_elemt(x, weight, bias, mean, inverse_std, norm.eps);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &inverse_std = saved[3];
    // The kernels for channels_last need both tensors in this layout.
    const at::Tensor g = gradients[0].contiguous(x.suggest_memory_format());
    const bool needs_input = context->needs_input_grad(0);
    const auto [sum_g, sum_g_centred, weight_gradient, bias_gradient] =
        at::batch_norm_backward_reduce(g, x, mean, inverse_std, weight, needs_input,
                                       context->needs_input_grad(1), context->needs_input_grad(2));
    at::Tensor input_gradient;
    if (needs_input) {
      const at::Tensor sums = at::cat({sum_g, sum_g_centred});
      reinterpret_cast<Communicator*>(context->saved_data["ranks"].toInt())->all_reduce_sum({sums});
      const std::int64_t channels = mean.numel();
      input_gradient = at::batch_norm_backward_elemt(
          g, x, mean, inverse_std, weight.to(mean.scalar_type()), sums.narrow(0, 0, channels),
          sums.narrow(0, channels, channels), /*count=*/saved[4]);
    }
    return {input_gradient, weight_gradient, bias_gradient, {}};
  }
};

}  // namespace

at::Tensor sync_batch_norm_cuda(const at::Tensor& x, const SyncBatchNorm& norm) {
  // If the first rank had no samples, the kernel would divide by zero on every rank.
  require(x.numel() > 0, "every rank normalises at least one sample");
  return KernelNormalize::apply(x, norm.weight, norm.bias, norm);
}

}  // namespace precast::models::detail
