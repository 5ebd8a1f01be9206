#include "models/detail/fused_dual_norm.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Arguments of the forward kernels for one of the two norms. Allocates the norm's statistics.
struct ForwardSide {
  at::Tensor mean, inv_std;
  BatchNormForward call;

  ForwardSide(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
              const FusedNorm& norm, const at::Tensor& workspace)
      : mean(at::empty_like(weight)),
        inv_std(at::empty_like(weight)),
        call{.x = x.const_data_ptr(),
             .weight = weight.const_data_ptr<float>(),
             .bias = bias.const_data_ptr<float>(),
             .eps = static_cast<float>(norm.eps),
             .momentum = static_cast<float>(norm.momentum),
             .running_mean = norm.running_mean.mutable_data_ptr<float>(),
             .running_var = norm.running_var.mutable_data_ptr<float>(),
             .num_batches_tracked = counter_of(norm),
             .mean = mean.mutable_data_ptr<float>(),
             .inv_std = inv_std.mutable_data_ptr<float>(),
             .workspace = workspace.mutable_data_ptr()} {}
};

/// Arguments of the backward kernels for one of the two norms. Allocates the norm's gradients.
struct BackwardSide {
  at::Tensor dx, d_weight, d_bias, workspace;
  BatchNormBackward call;

  /// @param saved x, weight, bias, mean and inv_std
  BackwardSide(const at::Tensor* saved, std::size_t workspace_bytes)
      : dx(at::empty_like(saved[0])),
        d_weight(at::empty_like(saved[1])),
        d_bias(at::empty_like(saved[2])),
        workspace(bytes_like(saved[0], workspace_bytes)),
        call{.x = saved[0].const_data_ptr(),
             .weight = saved[1].const_data_ptr<float>(),
             .bias = saved[2].const_data_ptr<float>(),
             .mean = saved[3].const_data_ptr<float>(),
             .inv_std = saved[4].const_data_ptr<float>(),
             .dx = dx.mutable_data_ptr(),
             .d_weight = d_weight.mutable_data_ptr<float>(),
             .d_bias = d_bias.mutable_data_ptr<float>(),
             .workspace = workspace.mutable_data_ptr()} {}
};

struct DualNorm : torch::autograd::Function<DualNorm> {
  /// The weights and biases are separate arguments, because autograd tracks only tensors that are
  /// arguments themselves.
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& bias,
                               const at::Tensor& shortcut, const at::Tensor& shortcut_weight,
                               const at::Tensor& shortcut_bias, const FusedNorm& norm,
                               const FusedNorm& shortcut_norm) {
    const FusedKernels& kernels = *fused_kernels();
    const BatchNormShape shape = norm_shape(x);
    const at::Tensor y = at::empty_like(x), mask = bytes_like(x, kernels.norm_mask_bytes(shape)),
                     workspace = bytes_like(x, kernels.norm_workspace_bytes(shape));
    ForwardSide first(x, weight, bias, norm, workspace);
    const ForwardSide second(shortcut, shortcut_weight, shortcut_bias, shortcut_norm, workspace);
    first.call.y = y.mutable_data_ptr();
    first.call.mask = mask.mutable_data_ptr<std::uint8_t>();
    kernels.dual_norm_forward(x, shape, {first.call, second.call});
    context->set_materialize_grads(false);
    context->save_for_backward({x, weight, bias, first.mean, first.inv_std, shortcut,
                                shortcut_weight, shortcut_bias, second.mean, second.inv_std, mask});
    return {y, fork_of(y)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_derivative();
    const auto [dy, fork] = fork_gradients(gradients);
    if (!dy.defined()) return variable_list(8);
    const FusedKernels& kernels = *fused_kernels();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &mask = saved[10];
    const BatchNormShape shape = norm_shape(x);
    const at::Tensor sum = at::empty_like(x);
    const std::size_t workspace_bytes = kernels.norm_workspace_bytes(shape);
    BackwardSide first(saved.data(), workspace_bytes);
    const BackwardSide second(saved.data() + 5, workspace_bytes);
    at::Tensor holders[2];
    first.call.dy = optional_data(dy, x.scalar_type(), holders[0]);
    first.call.dy_fork = optional_data(fork, x.scalar_type(), holders[1]);
    first.call.mask = mask.const_data_ptr<std::uint8_t>();
    first.call.d_residual = sum.mutable_data_ptr();
    kernels.dual_norm_backward(x, shape, {first.call, second.call});
    return {first.dx,        first.d_weight, first.d_bias, second.dx,
            second.d_weight, second.d_bias,  {},           {}};
  }
};

}  // namespace

Forked fused_dual_norm(const at::Tensor& x, const FusedNorm& norm, const at::Tensor& shortcut,
                       const FusedNorm& shortcut_norm) {
  require(can_fuse(x) && can_fuse(shortcut), "fused kernels run only where can_fuse() is true");
  require(x.sizes() == shortcut.sizes() && x.scalar_type() == shortcut.scalar_type(),
          "both norms have inputs of one shape and dtype");
  const variable_list results =
      DualNorm::apply(x, norm.weight, norm.bias, shortcut, shortcut_norm.weight, shortcut_norm.bias,
                      norm, shortcut_norm);
  return {results[0], results[1]};
}

}  // namespace precast::models::detail
