#include "models/detail/batch_norm.h"

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

/// A value a channel, [C], in the shape of a channel axis.
at::Tensor by_channel(const at::Tensor& values) {
  return values.view({1, -1, 1, 1});
}

/// Mean and variance of all ranks' samples, in float64: [C] each.
struct Statistics {
  at::Tensor mean, variance;
  double count = 0;
};

Statistics gather_statistics(const at::Tensor& x, Communicator& ranks) {
  const std::int64_t channels = x.size(1);
  const at::Tensor wide = x.to(at::kDouble);
  at::Tensor sums = at::cat({wide.sum(kAllButChannels), wide.square().sum(kAllButChannels),
                             at::full({1}, x.numel() / channels, wide.options())});
  ranks.all_reduce_sum({sums});
  const at::Tensor count = sums.narrow(0, 2 * channels, 1);
  Statistics statistics;
  statistics.mean = sums.narrow(0, 0, channels) / count;
  statistics.variance = sums.narrow(0, channels, channels) / count - statistics.mean.square();
  statistics.count = count.item<double>();
  return statistics;
}

/// The normalisation with its gradient: what a sample does to the statistics reaches every rank.
class Normalize : public torch::autograd::Function<Normalize> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight,
                          const Variable& bias, const at::Tensor& mean,
                          const at::Tensor& inverse_std, double count, Communicator* ranks) {
    const at::Tensor normal = (x - by_channel(mean)) * by_channel(inverse_std);
    context->save_for_backward({normal, weight, inverse_std});
    context->saved_data["count"] = count;
    context->saved_data["ranks"] = reinterpret_cast<std::int64_t>(ranks);
    return (normal * by_channel(weight) + by_channel(bias)).to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &normal = saved[0], &weight = saved[1], &inverse_std = saved[2];
    const at::Tensor g = gradients[0].to(normal.scalar_type());
    const at::Tensor bias_gradient = g.sum(kAllButChannels);
    const at::Tensor weight_gradient = (g * normal).sum(kAllButChannels);
    at::Tensor sums = at::cat({bias_gradient, weight_gradient});
    auto* ranks = reinterpret_cast<Communicator*>(context->saved_data["ranks"].toInt());
    ranks->all_reduce_sum({sums});
    sums = sums / context->saved_data["count"].toDouble();
    const std::int64_t channels = g.size(1);
    const at::Tensor inner = g - by_channel(sums.narrow(0, 0, channels)) -
                             normal * by_channel(sums.narrow(0, channels, channels));
    const at::Tensor input_gradient =
        (inner * by_channel(weight * inverse_std)).to(gradients[0].scalar_type());
    return {input_gradient, weight_gradient, bias_gradient, {}, {}, {}, {}};
  }
};

}  // namespace

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& input) {
  if (ranks_ == nullptr || !is_training()) return torch::nn::BatchNorm2dImpl::forward(input);
  const at::Tensor x = input.to(weight.scalar_type());
  at::Tensor mean, inverse_std;
  double count = 0;
  {
    const at::NoGradGuard no_grad;
    const Statistics statistics = gather_statistics(x, *ranks_);
    count = statistics.count;
    const double momentum = options.momentum().value();
    const at::Tensor unbiased = statistics.variance * (count / std::max(count - 1, 1.0));
    running_mean.lerp_(statistics.mean.to(running_mean.scalar_type()), momentum);
    running_var.lerp_(unbiased.to(running_var.scalar_type()), momentum);
    num_batches_tracked.add_(1);
    mean = statistics.mean.to(x.scalar_type());
    inverse_std = (statistics.variance + options.eps()).rsqrt().to(x.scalar_type());
  }
  return Normalize::apply(x, weight, bias, mean, inverse_std, count, ranks_)
      .to(input.scalar_type());
}

}  // namespace precast::models::detail
