#include "recipes/optim/fused_sgd.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "framework/core/error.h"
#include "recipes/detail/fused_kernels.h"

namespace precast::recipes {
namespace {

using Groups = FusedSgd::Groups;

std::optional<FloatType> float_type(at::ScalarType type) {
  if (type == at::kFloat) return FloatType::f32;
  if (type == at::kHalf) return FloatType::f16;
  if (type == at::kBFloat16) return FloatType::bf16;
  return std::nullopt;
}

std::vector<SgdTensor> tensors_of(const Groups& groups) {
  require(FusedSgd::can_step(groups), "fused kernels run only where can_step() is true");
  std::vector<SgdTensor> tensors;
  for (const ParameterGroups::Group& group : groups) {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor &parameter = group.parameters[i], &gradient = group.gradients[i];
      float* const velocity =
          group.moments.empty() ? nullptr : group.moments[0][i].mutable_data_ptr<float>();
      tensors.push_back({.parameter = parameter.mutable_data_ptr<float>(),
                         .gradient = gradient.const_data_ptr(),
                         .velocity = velocity,
                         .count = parameter.numel(),
                         .weight_decay = static_cast<float>(group.weight_decay),
                         .gradient_type = *float_type(gradient.scalar_type())});
    }
  }
  return tensors;
}

/// The value's address; nullptr for an undefined tensor.
float* address_of(const at::Tensor& value) {
  return value.defined() ? value.mutable_data_ptr<float>() : nullptr;
}

float* found_inf_of(const std::optional<Optimizer::Scaled>& scaled) {
  return scaled ? address_of(scaled->found_inf) : nullptr;
}

const at::Tensor& first_of(const Groups& groups) {
  return groups[0].parameters[0];
}

/// If the step needs it, computes the norm of all gradients and checks whether they are finite.
/// @return the clipping factor; undefined without clipping.
at::Tensor compute_clip_factor(const Groups& groups, SgdTensors tensors,
                               const Optimizer::ScaledStep& step) {
  const bool clips = std::isfinite(step.max_norm);
  if (!clips && !step.found_inf.defined()) return {};
  const detail::FusedKernels& kernels = *detail::fused_kernels();
  const at::TensorOptions on = first_of(groups).options();
  const auto bytes = static_cast<std::int64_t>(kernels.gradient_norm_workspace_bytes(tensors));
  const at::Tensor workspace = at::empty({bytes}, on.dtype(at::kByte)),
                   clip = clips ? at::empty({}, on.dtype(at::kFloat)) : at::Tensor();
  kernels.gradient_norm(first_of(groups), tensors,
                        {.grad_scale = address_of(step.scale),
                         .max_norm = static_cast<float>(step.max_norm),
                         .clip = address_of(clip),
                         .found_inf = address_of(step.found_inf),
                         .workspace = workspace.mutable_data_ptr()});
  return clip;
}

}  // namespace

bool FusedSgd::can_step(const Groups& groups) {
  if (groups.empty()) return false;
  const at::Device device = first_of(groups).device();
  return std::ranges::all_of(groups, [&](const ParameterGroups::Group& group) {
    return std::ranges::all_of(group.parameters,
                               [&](const at::Tensor& parameter) {
                                 return detail::has_fused_kernels_for(parameter) &&
                                        parameter.device() == device &&
                                        parameter.scalar_type() == at::kFloat;
                               }) &&
           std::ranges::all_of(group.gradients, [&](const at::Tensor& gradient) {
             return gradient.device() == device && float_type(gradient.scalar_type());
           });
  });
}

void FusedSgd::step(const Groups& groups, double lr,
                    const std::optional<Optimizer::Scaled>& scaled) const {
  launch(groups, tensors_of(groups),
         {.lr = static_cast<float>(lr), .found_inf = found_inf_of(scaled)});
}

void FusedSgd::step(const Groups& groups, const at::Tensor& lr,
                    const std::optional<Optimizer::Scaled>& scaled) const {
  launch(groups, tensors_of(groups),
         {.lr_on_device = address_of(lr), .found_inf = found_inf_of(scaled)});
}

void FusedSgd::step(const Groups& groups, const Optimizer::ScaledStep& step) const {
  const std::vector<SgdTensor> tensors = tensors_of(groups);
  const at::Tensor clip = compute_clip_factor(groups, tensors, step);
  launch(groups, tensors,
         {.lr = static_cast<float>(step.lr),
          .lr_on_device = address_of(step.lr_tensor),
          .grad_scale = address_of(step.scale),
          .clip = address_of(clip),
          .found_inf = address_of(step.found_inf)});
}

void FusedSgd::launch(const Groups& groups, SgdTensors tensors, SgdStep step) const {
  step.momentum = momentum_;
  step.nesterov = nesterov_;
  detail::fused_kernels()->sgd_step(first_of(groups), tensors, step);
}

}  // namespace precast::recipes
