#include "recipes/detail/fused_logits.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "framework/core/error.h"
#include "recipes/detail/fused_kernels.h"

namespace precast::recipes::detail {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Kernels read and write up to 16 bytes at a time.
constexpr std::uintptr_t kAlignment = 16;

LogitsShape logits_shape(const at::Tensor& logits) {
  FloatType type = FloatType::f32;
  if (logits.scalar_type() == at::kHalf) type = FloatType::f16;
  if (logits.scalar_type() == at::kBFloat16) type = FloatType::bf16;
  return {logits.size(0), static_cast<int>(logits.size(1)), type};
}

at::Tensor workspace_on(const at::Tensor& logits, std::size_t bytes) {
  return at::empty({static_cast<std::int64_t>(bytes)}, logits.options().dtype(at::kByte));
}

/// Returns a call with the inputs set; the caller sets where the results are written.
CrossEntropyCall cross_entropy_call(const at::Tensor& logits, const at::Tensor& labels,
                                    double label_smoothing, const at::Tensor& workspace) {
  return {.logits = logits.const_data_ptr(),
          .labels = labels.const_data_ptr<std::int64_t>(),
          .label_smoothing = static_cast<float>(label_smoothing),
          .workspace = workspace.mutable_data_ptr()};
}

struct CrossEntropyOp : torch::autograd::Function<CrossEntropyOp> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& logits,
                            const at::Tensor& labels, double label_smoothing) {
    const FusedKernels& kernels = *fused_kernels();
    const LogitsShape shape = logits_shape(logits);
    const at::Tensor loss = at::empty({}, logits.options().dtype(at::kFloat)),
                     workspace = workspace_on(logits, kernels.cross_entropy_workspace_bytes(shape));
    CrossEntropyCall call = cross_entropy_call(logits, labels, label_smoothing, workspace);
    call.loss = loss.mutable_data_ptr<float>();
    kernels.cross_entropy(logits, shape, call);
    context->set_materialize_grads(false);
    context->saved_data["label_smoothing"] = label_smoothing;
    context->save_for_backward({logits, labels});
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require(!at::GradMode::is_enabled(),
            "fused ops can be differentiated only once; set loss.kernels: reference");
    if (!gradients[0].defined()) return {{}, {}, {}};
    const FusedKernels& kernels = *fused_kernels();
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &logits = saved[0], &labels = saved[1];
    const LogitsShape shape = logits_shape(logits);
    const at::Tensor d_logits = at::empty_like(logits), d_loss = gradients[0].to(at::kFloat),
                     workspace = workspace_on(logits, kernels.cross_entropy_workspace_bytes(shape));
    CrossEntropyCall call = cross_entropy_call(
        logits, labels, context->saved_data["label_smoothing"].toDouble(), workspace);
    call.d_logits = d_logits.mutable_data_ptr();
    call.d_loss = d_loss.const_data_ptr<float>();
    kernels.cross_entropy(logits, shape, call);
    return {d_logits, {}, {}};
  }
};

}  // namespace

bool can_fuse(const at::Tensor& logits, const at::Tensor& labels) {
  if (!has_fused_kernels_for(logits)) return false;
  const at::ScalarType type = logits.scalar_type();
  return (type == at::kFloat || type == at::kHalf || type == at::kBFloat16) && logits.dim() == 2 &&
         logits.numel() > 0 && logits.size(0) <= INT32_MAX && logits.size(1) <= INT32_MAX &&
         logits.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(logits.const_data_ptr()) % kAlignment == 0 &&
         labels.dim() == 1 && labels.size(0) == logits.size(0) &&
         labels.scalar_type() == at::kLong && labels.device() == logits.device() &&
         labels.is_contiguous();
}

at::Tensor fused_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                               double label_smoothing) {
  require(can_fuse(logits, labels), "fused kernels run only where can_fuse() is true");
  return CrossEntropyOp::apply(logits, labels, label_smoothing);
}

at::Tensor fused_top_k(const at::Tensor& logits, const at::Tensor& labels, std::int64_t k) {
  require(can_fuse(logits, labels) && k >= 1, "fused kernels run only where can_fuse() is true");
  const FusedKernels& kernels = *fused_kernels();
  const LogitsShape shape = logits_shape(logits);
  const at::Tensor count = at::empty({1}, logits.options().dtype(at::kDouble)),
                   workspace = workspace_on(logits, kernels.top_k_workspace_bytes(shape));
  kernels.count_top_k(logits, shape,
                      {.logits = logits.const_data_ptr(),
                       .labels = labels.const_data_ptr<std::int64_t>(),
                       .k = k,
                       .count = count.mutable_data_ptr<double>(),
                       .workspace = workspace.mutable_data_ptr()});
  return count;
}

}  // namespace precast::recipes::detail
