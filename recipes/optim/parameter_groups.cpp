#include "recipes/optim/parameter_groups.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <array>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

/// Whether the elements have the same order in memory. Strides of dimensions of size 1 do not
/// matter.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

at::Tensor with_layout_of(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (same_layout(parameter, gradient)) return gradient;
  return at::empty_like(parameter).copy_(gradient);
}

bool decays(const NamedTensor& parameter, bool legacy) {
  return legacy ? parameter.name.find("bn") == std::string::npos : parameter.tensor.dim() >= 2;
}

}  // namespace

void DecayOptions::options(Schema& schema) {
  schema.add("weight_decay", &weight_decay, "weight decay coefficient").min(0);
  schema
      .add("decay_groups", &decay_groups,
           "parameters with weight decay; legacy: all without bn in their names; clean: those with "
           "two or more dimensions")
      .choices({"legacy", "clean"});
}

ParameterGroups::ParameterGroups(const std::vector<NamedTensor>& parameters,
                                 const DecayOptions& options, std::vector<std::string> moments)
    : weight_decay_(options.weight_decay), moment_names_(std::move(moments)) {
  for (const NamedTensor& parameter : parameters) {
    require(parameter.tensor.is_non_overlapping_and_dense(),
            "a parameter's elements fill its memory");
    Member member{parameter, decays(parameter, options.decay_groups == "legacy"), {}};
    for (std::size_t i = 0; i < moment_names_.size(); ++i)
      member.moments.push_back(at::zeros_like(parameter.tensor.detach()));
    members_.push_back(std::move(member));
  }
}

void ParameterGroups::for_each(const std::function<void(const Group&)>& update) const {
  const at::NoGradGuard no_grad;
  std::array<Group, 4> groups;
  for (const Member& member : members_) {
    const at::Tensor& parameter = member.parameter.tensor;
    if (!parameter.grad().defined()) continue;
    const bool matrix = parameter.dim() >= 2;
    Group& group = groups.at((member.decays ? 1U : 0U) + (matrix ? 2U : 0U));
    group.weight_decay = member.decays ? weight_decay_ : 0;
    group.has_matrices = matrix;
    group.parameters.push_back(parameter);
    group.gradients.push_back(with_layout_of(parameter, parameter.grad()));
    group.moments.resize(moment_names_.size());
    for (std::size_t i = 0; i < group.moments.size(); ++i)
      group.moments[i].push_back(member.moments[i]);
  }
  for (const Group& group : groups) {
    if (!group.parameters.empty()) update(group);
  }
}

std::vector<NamedTensor> ParameterGroups::state() const {
  std::vector<NamedTensor> state;
  for (const Member& member : members_) {
    for (std::size_t i = 0; i < moment_names_.size(); ++i)
      state.push_back({member.parameter.name + "." + moment_names_[i], member.moments[i]});
  }
  return state;
}

at::Device ParameterGroups::device() const {
  return members_.empty() ? at::Device(at::kCPU) : members_.front().parameter.tensor.device();
}

}  // namespace precast::recipes
