#include "tools/bench/cost/op_kinds.h"

#include <array>
#include <unordered_map>

namespace precast::tools {
namespace {

struct KindNames {
  OpRule rule;
  std::string_view names;
};

// How the CUDA kernels that libtorch launches for these ops are counted. op_cost.cpp adds the
// details of a convolution's backward pass and the casts of autocast.
constexpr std::array<KindNames, 16> kRules{{
    {{OpKind::convolution}, "convolution convolution_backward convolution_overrideable"},
    {{OpKind::matmul}, "addmm mm bmm baddbmm addbmm mv dot"},
    // In fp16, cuDNN runs one kernel in the forward pass and one in the backward pass.
    {{OpKind::norm, 1}, "native_batch_norm cudnn_batch_norm"},
    {{OpKind::norm, 1, 2}, "native_layer_norm native_group_norm native_layer_norm_backward"},
    {{OpKind::norm, 1}, "native_batch_norm_backward cudnn_batch_norm_backward"},
    {{OpKind::norm, 1, 3}, "native_group_norm_backward"},
    {{OpKind::activation},
     "relu relu_ threshold threshold_ threshold_backward gelu gelu_ gelu_backward silu silu_ "
     "silu_backward sigmoid sigmoid_ sigmoid_backward tanh tanh_ tanh_backward hardswish "
     "hardswish_ "
     "hardswish_backward hardsigmoid hardsigmoid_ hardsigmoid_backward hardtanh hardtanh_ "
     "hardtanh_backward leaky_relu leaky_relu_ leaky_relu_backward elu elu_ elu_backward mish "
     "mish_ "
     "mish_backward softplus softplus_backward _prelu_kernel _prelu_kernel_backward clamp clamp_ "
     "clamp_min clamp_min_ clamp_max clamp_max_"},
    {{OpKind::add}, "add add_"},
    {{OpKind::pool},
     "max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward "
     "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_max_pool2d "
     "adaptive_max_pool2d_backward"},
    {{OpKind::pointwise},
     "mul mul_ div div_ sub sub_ rsub neg neg_ abs exp log log1p pow sqrt rsqrt reciprocal square "
     "sin cos floor ceil round lerp lerp_ where masked_fill masked_fill_ addcmul addcmul_ addcdiv "
     "addcdiv_ eq ne lt le gt ge logical_not logical_and logical_or bitwise_not bitwise_and "
     "bitwise_or maximum minimum copy_ zero_ fill_ bernoulli_ uniform_ normal_ random_ "
     "native_dropout native_dropout_backward cat stack flip roll index index_select gather scatter "
     "scatter_ scatter_add index_put_ _index_put_impl_ masked_scatter one_hot arange randperm "
     "upsample_nearest2d upsample_nearest2d_backward upsample_bilinear2d constant_pad_nd "
     "upsample_bilinear2d_backward reflection_pad2d replication_pad2d sign isfinite isnan"},
    {{OpKind::reduction},
     "sum mean amax amin max min argmax argmin prod var std var_mean linalg_vector_norm norm topk "
     "sort cumsum any all"},
    {{OpKind::loss},
     "_log_softmax _log_softmax_backward_data _softmax _softmax_backward_data nll_loss_forward "
     "nll_loss_backward nll_loss2d_forward nll_loss2d_backward binary_cross_entropy_with_logits "
     "binary_cross_entropy binary_cross_entropy_backward mse_loss mse_loss_backward smooth_l1_loss "
     "smooth_l1_loss_backward huber_loss huber_loss_backward"},
    {{OpKind::optimizer},
     "_fused_sgd_ _fused_adam_ _fused_adamw_ _amp_foreach_non_finite_check_and_unscale_"},
    {{OpKind::optimizer},
     "_foreach_add_ _foreach_mul_ _foreach_lerp_ _foreach_copy_ _foreach_norm _foreach_div_ "
     "_foreach_addcmul_ _foreach_addcdiv_ _foreach_sub_ _foreach_sqrt _foreach_add _foreach_mul"},
    {{OpKind::view, 0, 0},
     "view _unsafe_view reshape _reshape_alias flatten t transpose permute expand expand_as "
     "as_strided as_strided_ detach detach_ squeeze squeeze_ unsqueeze unsqueeze_ select slice "
     "narrow split chunk unbind alias unfold view_as diagonal movedim numpy_T lift_fresh"},
    // Memory, types and devices.
    {{OpKind::view, 0, 0},
     "empty empty_like empty_strided new_empty new_empty_strided resize_ resize_as_ result_type "
     "resolve_conj resolve_neg is_nonzero item _local_scalar_dense is_same_size size stride set_ "
     "requires_grad_ is_complex is_floating_point _has_compatible_shallow_copy_type isclose to "
     "contiguous _to_copy clone zeros ones full zeros_like ones_like full_like new_zeros new_ones "
     "new_full scalar_tensor"},
}};

}  // namespace

std::string_view kind_name(OpKind kind) {
  constexpr std::array<std::string_view, 14> kNames{"convolution",    "depthwise convolution",
                                                    "matrix product", "norm",
                                                    "activation",     "add",
                                                    "pool",           "pointwise",
                                                    "reduction",      "loss",
                                                    "cast",           "optimizer",
                                                    "view",           "composite"};
  return kNames.at(static_cast<std::size_t>(kind));
}

OpRule find_rule(const std::string& name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, OpRule> rules;
    for (const KindNames& entry : kRules) {
      for (std::string_view rest = entry.names; !rest.empty();) {
        const std::size_t end = rest.find(' ');
        rules.emplace(rest.substr(0, end), entry.rule);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      }
    }
    return rules;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? OpRule{} : found->second;
}

}  // namespace precast::tools
