#include "models/detail/fused_norm.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <optional>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Norm : torch::autograd::Function<Norm> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const std::optional<at::Tensor>& residual, const at::Tensor& weight,
                               const at::Tensor& bias, const FusedNorm& norm) {
    const FusedKernels& kernels = *fused_kernels();
    const BatchNormShape shape = norm_shape(x);
    const at::Tensor y = at::empty_like(x), mean = at::empty_like(weight),
                     inv_std = at::empty_like(weight);
    at::Tensor added, mask;
    if (residual) {
      added = to_kernel_format(*residual, x.scalar_type());
      if (norm.relu) mask = bytes_like(x, kernels.norm_mask_bytes(shape));
    }
    const at::Tensor workspace = bytes_like(x, kernels.norm_workspace_bytes(shape));
    kernels.norm_forward(x, shape,
                         {.x = x.const_data_ptr(),
                          .residual = residual ? added.const_data_ptr() : nullptr,
                          .weight = weight.const_data_ptr<float>(),
                          .bias = bias.const_data_ptr<float>(),
                          .eps = static_cast<float>(norm.eps),
                          .momentum = static_cast<float>(norm.momentum),
                          .relu = norm.relu,
                          .running_mean = norm.running_mean.mutable_data_ptr<float>(),
                          .running_var = norm.running_var.mutable_data_ptr<float>(),
                          .num_batches_tracked = counter_of(norm),
                          .y = y.mutable_data_ptr(),
                          .mean = mean.mutable_data_ptr<float>(),
                          .inv_std = inv_std.mutable_data_ptr<float>(),
                          .mask = mask.defined() ? mask.mutable_data_ptr<std::uint8_t>() : nullptr,
                          .workspace = workspace.mutable_data_ptr()});
    context->set_materialize_grads(false);
    context->save_for_backward({x, weight, bias, mean, inv_std, mask});
    context->saved_data["relu"] = norm.relu;
    context->saved_data["adds"] = residual.has_value();
    return {y, fork_of(y)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_derivative();
    const auto [first, second] = fork_gradients(gradients);
    if (!first.defined()) return {{}, {}, {}, {}, {}};
    const FusedKernels& kernels = *fused_kernels();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3],
                     &inv_std = saved[4], &mask = saved[5];
    const bool adds = context->saved_data["adds"].toBool();
    const BatchNormShape shape = norm_shape(x);
    const at::Tensor dx = at::empty_like(x);
    const at::Tensor d_weight = at::empty_like(weight), d_bias = at::empty_like(bias);
    at::Tensor d_residual;
    if (adds) d_residual = at::empty_like(x);
    const at::Tensor workspace = bytes_like(x, kernels.norm_workspace_bytes(shape));
    at::Tensor holders[2];
    kernels.norm_backward(x, shape,
                          {.x = x.const_data_ptr(),
                           .dy = optional_data(first, x.scalar_type(), holders[0]),
                           .dy_fork = optional_data(second, x.scalar_type(), holders[1]),
                           .weight = weight.const_data_ptr<float>(),
                           .bias = bias.const_data_ptr<float>(),
                           .mean = mean.const_data_ptr<float>(),
                           .inv_std = inv_std.const_data_ptr<float>(),
                           .relu = context->saved_data["relu"].toBool(),
                           .mask = mask.defined() ? mask.const_data_ptr<std::uint8_t>() : nullptr,
                           .dx = dx.mutable_data_ptr(),
                           .d_residual = adds ? d_residual.mutable_data_ptr() : nullptr,
                           .d_weight = d_weight.mutable_data_ptr<float>(),
                           .d_bias = d_bias.mutable_data_ptr<float>(),
                           .workspace = workspace.mutable_data_ptr()});
    return {dx, d_residual, d_weight, d_bias, {}};
  }
};

}  // namespace

Forked fused_norm(const at::Tensor& x, const at::Tensor& residual, const FusedNorm& norm) {
  require(can_fuse(x), "fused kernels run only where can_fuse() is true");
  const std::optional<at::Tensor> added =
      residual.defined() ? std::optional(residual) : std::nullopt;
  const variable_list results = Norm::apply(x, added, norm.weight, norm.bias, norm);
  return {results[0], results[1]};
}

}  // namespace precast::models::detail
