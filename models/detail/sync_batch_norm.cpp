#include "models/detail/sync_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/custom_function.h>

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

const std::vector<std::int64_t> kAllButChannels = {0, 2, 3};

/// Reshapes values per channel from [C] to [1, C, 1, 1].
at::Tensor by_channel(const at::Tensor& values) {
  return values.view({1, -1, 1, 1});
}

/// The statistics of all ranks' samples, in float64.
struct Statistics {
  /// [C] each.
  at::Tensor mean, variance;
  /// A scalar: the number of values per channel.
  at::Tensor count;
};

Statistics gather_statistics(const at::Tensor& x, Communicator& ranks) {
  const std::int64_t channels = x.size(1);
  const at::Tensor wide = x.to(at::kDouble);
  at::Tensor sums = at::cat({wide.sum(kAllButChannels), wide.square().sum(kAllButChannels),
                             at::full({1}, x.numel() / channels, wide.options())});
  ranks.all_reduce_sum({sums});
  Statistics statistics;
  statistics.count = sums[2 * channels];
  statistics.mean = sums.narrow(0, 0, channels) / statistics.count;
  statistics.variance =
      sums.narrow(0, channels, channels) / statistics.count - statistics.mean.square();
  return statistics;
}

/// The normalisation and its gradient, which includes the effect of each sample on the statistics
/// of all ranks.
class Normalize : public torch::autograd::Function<Normalize> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const Variable& bias, const Statistics& statistics, double eps,
                          Communicator* ranks) {
    const at::Tensor mean = statistics.mean.to(x.scalar_type());
    const at::Tensor inverse_std = (statistics.variance + eps).rsqrt().to(x.scalar_type());
    const at::Tensor normal = (x - by_channel(mean)) * by_channel(inverse_std);
    context->save_for_backward({normal, weight, inverse_std, statistics.count});
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(ranks);
    return normal * by_channel(weight) + by_channel(bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &normal = saved[0], &weight = saved[1], &inverse_std = saved[2];
    const at::Tensor& count = saved[3];
    const at::Tensor& g = gradients[0];
    const at::Tensor bias_gradient = g.sum(kAllButChannels);
    const at::Tensor weight_gradient = (g * normal).sum(kAllButChannels);
    at::Tensor sums = at::cat({bias_gradient, weight_gradient});
    auto* ranks = reinterpret_cast<Communicator*>(context->saved_data["ranks"].toInt());
    ranks->all_reduce_sum({sums});
    sums = sums / count;
    const std::int64_t channels = g.size(1);
    const at::Tensor inner = g - by_channel(sums.narrow(0, 0, channels)) -
                             normal * by_channel(sums.narrow(0, channels, channels));
    return {inner * by_channel(weight * inverse_std), weight_gradient, bias_gradient, {}, {}, {}};
  }
};

void update_running(const Statistics& statistics, const SyncBatchNorm& norm) {
  const at::Tensor unbiased =
      statistics.variance * (statistics.count / (statistics.count - 1).clamp_min(1));
  norm.running_mean.lerp_(statistics.mean.to(norm.running_mean.scalar_type()), norm.momentum);
  norm.running_var.lerp_(unbiased.to(norm.running_var.scalar_type()), norm.momentum);
}

}  // namespace

at::Tensor sync_batch_norm(const at::Tensor& input, const SyncBatchNorm& norm) {
  const at::Tensor x = input.to(norm.weight.scalar_type());
  Statistics statistics;
  {
    const at::NoGradGuard no_grad;
    statistics = gather_statistics(x, *norm.ranks);
    update_running(statistics, norm);
  }
  return Normalize::apply(x, norm.weight, norm.bias, statistics, norm.eps, norm.ranks)
      .to(input.scalar_type());
}

}  // namespace precast::models::detail
