#include "models/detail/fused_norm_pool.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct NormPool : torch::autograd::Function<NormPool> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& bias,
                               const FusedNorm& norm) {
    const FusedKernels& kernels = *fused_kernels();
    const MaxPoolShape shape = max_pool_shape(x.sizes(), x.scalar_type());
    const at::Tensor y = empty_pooled(x, x.scalar_type()), largest = at::empty_like(y),
                     argmax = empty_pooled(x, at::kByte), mean = at::empty_like(weight),
                     inv_std = at::empty_like(weight),
                     workspace = bytes_like(x, kernels.norm_workspace_bytes(norm_shape(shape)));
    kernels.norm_pool_forward(x, shape,
                              {.norm = {.x = x.const_data_ptr(),
                                        .weight = weight.const_data_ptr<float>(),
                                        .bias = bias.const_data_ptr<float>(),
                                        .eps = static_cast<float>(norm.eps),
                                        .momentum = static_cast<float>(norm.momentum),
                                        .running_mean = norm.running_mean.mutable_data_ptr<float>(),
                                        .running_var = norm.running_var.mutable_data_ptr<float>(),
                                        .num_batches_tracked = counter_of(norm),
                                        .y = y.mutable_data_ptr(),
                                        .mean = mean.mutable_data_ptr<float>(),
                                        .inv_std = inv_std.mutable_data_ptr<float>(),
                                        .workspace = workspace.mutable_data_ptr()},
                               .largest = largest.mutable_data_ptr(),
                               .argmax = argmax.mutable_data_ptr<std::uint8_t>()});
    context->set_materialize_grads(false);
    context->save_for_backward({x, weight, bias, mean, inv_std, largest, argmax});
    return {y, fork_of(y)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_derivative();
    const auto [first, second] = fork_gradients(gradients);
    if (!first.defined()) return {{}, {}, {}, {}};
    const FusedKernels& kernels = *fused_kernels();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3],
                     &inv_std = saved[4], &largest = saved[5], &argmax = saved[6];
    const MaxPoolShape shape = max_pool_shape(x.sizes(), x.scalar_type());
    const at::Tensor dx = at::empty_like(x), d_weight = at::empty_like(weight),
                     d_bias = at::empty_like(bias),
                     workspace =
                         bytes_like(x, kernels.norm_workspace_bytes(pooled_norm_shape(shape)));
    at::Tensor holders[2];
    kernels.norm_pool_backward(
        x, shape,
        {.norm = {.x = x.const_data_ptr(),
                  .dy = optional_data(first, x.scalar_type(), holders[0]),
                  .dy_fork = optional_data(second, x.scalar_type(), holders[1]),
                  .weight = weight.const_data_ptr<float>(),
                  .bias = bias.const_data_ptr<float>(),
                  .mean = mean.const_data_ptr<float>(),
                  .inv_std = inv_std.const_data_ptr<float>(),
                  .dx = dx.mutable_data_ptr(),
                  .d_weight = d_weight.mutable_data_ptr<float>(),
                  .d_bias = d_bias.mutable_data_ptr<float>(),
                  .workspace = workspace.mutable_data_ptr()},
         .largest = largest.const_data_ptr(),
         .argmax = argmax.const_data_ptr<std::uint8_t>()});
    return {dx, d_weight, d_bias, {}};
  }
};

}  // namespace

Forked fused_norm_pool(const at::Tensor& x, const FusedNorm& norm) {
  require(can_fuse(x), "fused kernels run only where can_fuse() is true");
  const variable_list results = NormPool::apply(x, norm.weight, norm.bias, norm);
  return {results[0], results[1]};
}

}  // namespace precast::models::detail
