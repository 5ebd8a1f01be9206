#include "models/detail/fused_blur.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// @param sizes [N, C, H, W]
BlurShape blur_shape(at::IntArrayRef sizes, at::ScalarType type) {
  return {sizes[0], static_cast<int>(sizes[2]), static_cast<int>(sizes[3]),
          static_cast<int>(sizes[1]), activation_type(type)};
}

/// Returns all blurred pixels, those at even rows and columns, or both in this order.
struct Blur : torch::autograd::Function<Blur> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x, bool all, bool even) {
    context->set_materialize_grads(false);
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["all"] = all;
    variable_list results;
    const auto add = [&](std::int64_t height, std::int64_t width) {
      results.push_back(at::empty({x.size(0), x.size(1), height, width},
                                  x.options().memory_format(at::MemoryFormat::ChannelsLast)));
      return results.back().mutable_data_ptr();
    };
    void* const y = all ? add(x.size(2), x.size(3)) : nullptr;
    void* const y_even = even ? add((x.size(2) + 1) / 2, (x.size(3) + 1) / 2) : nullptr;
    fused_kernels()->blur_forward(x, blur_shape(x.sizes(), x.scalar_type()),
                                  {.x = x.const_data_ptr(), .y = y, .y_even = y_even});
    return results;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_derivative();
    const bool all = context->saved_data["all"].toBool();
    const std::vector<std::int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const at::Tensor dy = all ? gradients.front() : at::Tensor(),
                     dy_even = all && gradients.size() == 1 ? at::Tensor() : gradients.back();
    const at::Tensor& any = dy.defined() ? dy : dy_even;
    if (!any.defined()) return {{}, {}, {}};
    const at::ScalarType type = any.scalar_type();
    const at::Tensor dx =
        at::empty(sizes, any.options().memory_format(at::MemoryFormat::ChannelsLast));
    at::Tensor holders[2];
    fused_kernels()->blur_backward(dx, blur_shape(sizes, type),
                                   {.dy = optional_data(dy, type, holders[0]),
                                    .dy_even = optional_data(dy_even, type, holders[1]),
                                    .dx = dx.mutable_data_ptr()});
    return {dx, {}, {}};
  }
};

variable_list blurred(const at::Tensor& x, bool all, bool even) {
  require(can_fuse(x), "fused kernels run only where can_fuse() is true");
  return Blur::apply(x, all, even);
}

}  // namespace

at::Tensor fused_blur(const at::Tensor& x) {
  return blurred(x, /*all=*/true, /*even=*/false)[0];
}

at::Tensor fused_blur_even(const at::Tensor& x) {
  return blurred(x, /*all=*/false, /*even=*/true)[0];
}

Blurred fused_blur_both(const at::Tensor& x) {
  const variable_list results = blurred(x, /*all=*/true, /*even=*/true);
  return {results[0], results[1]};
}

}  // namespace precast::models::detail
