#include "models/detail/fused_max_pool.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <vector>

#include "framework/core/error.h"
#include "models/detail/fused_kernels.h"

namespace precast::models::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct MaxPool : torch::autograd::Function<MaxPool> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x) {
    const MaxPoolShape shape = max_pool_shape(x.sizes(), x.scalar_type());
    const at::Tensor y = empty_pooled(x, x.scalar_type()), argmax = empty_pooled(x, at::kByte);
    fused_kernels()->max_pool_forward(x, shape,
                                      {.x = x.const_data_ptr(),
                                       .y = y.mutable_data_ptr(),
                                       .argmax = argmax.mutable_data_ptr<std::uint8_t>()});
    context->set_materialize_grads(false);
    context->saved_data["sizes"] = x.sizes();
    context->save_for_backward({argmax});
    return {y, fork_of(y)};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_derivative();
    const auto [first, second] = fork_gradients(gradients);
    if (!first.defined()) return {{}};
    const at::ScalarType type = first.scalar_type();
    const std::vector<std::int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const at::Tensor argmax = context->get_saved_variables()[0];
    const at::Tensor dx =
        at::empty(sizes, first.options().memory_format(at::MemoryFormat::ChannelsLast));
    at::Tensor holders[2];
    fused_kernels()->max_pool_backward(dx, max_pool_shape(sizes, type),
                                       {.dy = optional_data(first, type, holders[0]),
                                        .dy_fork = optional_data(second, type, holders[1]),
                                        .argmax = argmax.const_data_ptr<std::uint8_t>(),
                                        .dx = dx.mutable_data_ptr()});
    return {dx};
  }
};

}  // namespace

Forked fused_max_pool(const at::Tensor& x) {
  require(can_fuse(x), "fused kernels run only where can_fuse() is true");
  const variable_list results = MaxPool::apply(x);
  return {results[0], results[1]};
}

}  // namespace precast::models::detail
