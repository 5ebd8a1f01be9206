#include "recipes/optim/lamb.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/where.h>

#include "recipes/optim/layerwise.h"
#include "recipes/optim/moment_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

/// Moves averages towards `values`. In a skipped step, the target of each average is its current
/// value, because an infinite value times a weight of 0 would be NaN.
void update_averages(const Tensors& averages, Tensors values, double weight,
                     const std::optional<Optimizer::Scaled>& scaled) {
  if (scaled) {
    const at::Tensor skip = scaled->found_inf > 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = at::where(skip, averages[i], values[i]);
  }
  at::_foreach_lerp_(averages, values, weight);
}

class Lamb final : public Optimizer {
 public:
  Lamb(const OptimizerInputs& inputs, const MomentOptions& options)
      : groups_(inputs.parameters, options, {"exp_avg", "exp_avg_sq"}),
        rule_(options, groups_.device()) {}

  void step(double lr, const std::optional<Scaled>& scaled) override { update(lr, scaled); }
  [[nodiscard]] bool takes_lr_tensor() const override { return true; }
  void step_with(const at::Tensor& lr, const std::optional<Scaled>& scaled) override {
    update(lr, scaled);
  }

  [[nodiscard]] State state() const override {
    State state{groups_.state(), {}};
    state.tensors.push_back({"steps", rule_.steps});
    return state;
  }

 private:
  template <typename Rate>
  void update(const Rate& lr, const std::optional<Scaled>& scaled) {
    if (groups_.empty()) return;
    rule_.advance(scaled);
    // Computed in double, because 1 - beta2 is small. Clamped to at least 1, because the count is 0
    // after a skipped first step.
    const at::Tensor steps = rule_.steps.to(at::kDouble).clamp_min(1);
    const at::Tensor bias_correction1 = (1 - at::pow(rule_.beta1, steps)).to(at::kFloat);
    const at::Tensor bias_correction2_sqrt =
        (1 - at::pow(rule_.beta2, steps)).sqrt().to(at::kFloat);
    groups_.for_each([&](const ParameterGroups::Group& group) {
      update_averages(group.moments[0], group.gradients, 1 - rule_.beta1, scaled);
      update_averages(group.moments[1], at::_foreach_mul(group.gradients, group.gradients),
                      1 - rule_.beta2, scaled);
      const Tensors updates = direction(group, bias_correction1, bias_correction2_sqrt);
      if (scaled) at::_foreach_mul_(updates, 1 - scaled->found_inf);
      subtract(group.parameters, updates, lr);
    });
  }

  static void subtract(const Tensors& parameters, const Tensors& updates, double lr) {
    at::_foreach_add_(parameters, updates, -lr);
  }
  /// Rounds once more than the overload above, because no foreach op reads the factor of its second
  /// operand from a tensor.
  static void subtract(const Tensors& parameters, const Tensors& updates, const at::Tensor& lr) {
    at::_foreach_mul_(updates, lr);
    at::_foreach_sub_(parameters, updates);
  }

  [[nodiscard]] Tensors direction(const ParameterGroups::Group& group,
                                  const at::Tensor& bias_correction1,
                                  const at::Tensor& bias_correction2_sqrt) const {
    Tensors updates = at::_foreach_div(group.moments[0], bias_correction1);
    const Tensors roots = at::_foreach_sqrt(group.moments[1]);
    at::_foreach_div_(roots, bias_correction2_sqrt);
    at::_foreach_add_(roots, rule_.epsilon);
    at::_foreach_div_(updates, roots);
    if (group.weight_decay != 0) {
      at::_foreach_add_(updates, group.parameters, group.weight_decay);
    }
    if (group.has_matrices) {
      const at::Tensor weight_norms = norms_of(group.parameters);
      const at::Tensor update_norms = norms_of(updates);
      scale_layerwise(updates, weight_norms / update_norms, weight_norms, update_norms);
    }
    return updates;
  }

  ParameterGroups groups_;
  MomentRule rule_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const OptimizerInputs& inputs, const MomentOptions& options) {
  return std::make_unique<Lamb>(inputs, options);
}

}  // namespace precast::recipes
