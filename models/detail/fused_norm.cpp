#include "models/detail/fused_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "framework/core/error.h"
#include "models/cuda/batch_norm.h"
#include "models/detail/fused_norm_device.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

BatchNormShape shape_of(const at::Tensor& x) {
  const ActivationType type = x.scalar_type() == at::kFloat  ? ActivationType::f32
                              : x.scalar_type() == at::kHalf ? ActivationType::f16
                                                             : ActivationType::bf16;
  return {x.numel() / x.size(1), static_cast<int>(x.size(1)), type};
}

at::Tensor bytes_like(const at::Tensor& x, std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, x.options().dtype(at::kByte));
}

/// As x: same dtype, channels-last without gaps.
at::Tensor like(const at::Tensor& tensor, const at::Tensor& x) {
  return tensor.to(x.scalar_type()).contiguous(at::MemoryFormat::ChannelsLast);
}

struct NormRelu : torch::autograd::Function<NormRelu> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& residual, const at::Tensor& weight,
                            const at::Tensor& bias, const FusedNorm& norm) {
    const BatchNormShape shape = shape_of(x);
    const bool adds = residual.defined();
    const at::Tensor added = adds ? like(residual, x) : at::Tensor();
    const at::Tensor y = at::empty_like(x), mean = at::empty_like(weight),
                     inv_std = at::empty_like(weight);
    const at::Tensor mask = adds ? bytes_like(x, batch_norm_mask_bytes(shape)) : at::Tensor();
    const at::Tensor workspace = bytes_like(x, batch_norm_workspace_bytes(shape));
    batch_norm_forward(shape,
                       {.x = x.const_data_ptr(),
                        .residual = adds ? added.const_data_ptr() : nullptr,
                        .weight = weight.const_data_ptr<float>(),
                        .bias = bias.const_data_ptr<float>(),
                        .eps = static_cast<float>(norm.eps),
                        .momentum = static_cast<float>(norm.momentum),
                        .running_mean = norm.running_mean.mutable_data_ptr<float>(),
                        .running_var = norm.running_var.mutable_data_ptr<float>(),
                        .y = y.mutable_data_ptr(),
                        .mean = mean.mutable_data_ptr<float>(),
                        .inv_std = inv_std.mutable_data_ptr<float>(),
                        .mask = adds ? mask.mutable_data_ptr<std::uint8_t>() : nullptr,
                        .workspace = workspace.mutable_data_ptr()},
                       stream_of(x));
    context->save_for_backward({x, weight, bias, mean, inv_std, mask});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2], &mean = saved[3],
                     &inv_std = saved[4], &mask = saved[5];
    const BatchNormShape shape = shape_of(x);
    const at::Tensor dy = like(gradients[0], x), dx = at::empty_like(x);
    const at::Tensor d_residual = mask.defined() ? at::empty_like(x) : at::Tensor();
    const at::Tensor d_weight = at::empty_like(weight), d_bias = at::empty_like(bias);
    const at::Tensor workspace = bytes_like(x, batch_norm_workspace_bytes(shape));
    batch_norm_backward(shape,
                        {.x = x.const_data_ptr(),
                         .dy = dy.const_data_ptr(),
                         .weight = weight.const_data_ptr<float>(),
                         .bias = bias.const_data_ptr<float>(),
                         .mean = mean.const_data_ptr<float>(),
                         .inv_std = inv_std.const_data_ptr<float>(),
                         .mask = mask.defined() ? mask.const_data_ptr<std::uint8_t>() : nullptr,
                         .dx = dx.mutable_data_ptr(),
                         .d_residual = mask.defined() ? d_residual.mutable_data_ptr() : nullptr,
                         .d_weight = d_weight.mutable_data_ptr<float>(),
                         .d_bias = d_bias.mutable_data_ptr<float>(),
                         .workspace = workspace.mutable_data_ptr()},
                        stream_of(x));
    return {dx, d_residual, d_weight, d_bias, {}};
  }
};

}  // namespace

bool can_fuse(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return runs_kernels(x) && x.dim() == 4 && x.numel() > x.size(1) &&
         (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) &&
         x.is_contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor fused_norm_relu(const at::Tensor& x, const at::Tensor& residual, const FusedNorm& norm) {
  require(can_fuse(x), "fused kernels run only where can_fuse() is true");
  return NormRelu::apply(x, residual, norm.weight, norm.bias, norm);
}

}  // namespace precast::models::detail
