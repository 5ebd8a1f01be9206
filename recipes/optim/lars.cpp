#include "recipes/optim/lars.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <fmt/format.h>

#include "framework/core/error.h"
#include "recipes/optim/layerwise.h"
#include "recipes/optim/momentum_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

class Lars final : public Optimizer {
 public:
  Lars(const std::vector<NamedTensor>& parameters, const OptimizerOptions& options)
      : trust_coefficient_(options.trust_coefficient),
        epsilon_(options.epsilon),
        rule_("lars", options),
        groups_("lars", parameters, options, rule_.moments()) {}

  void step(double lr, const std::optional<Scaled>& scaled) override {
    groups_.for_each([&](const ParameterGroups::Group& group) {
      const Tensors updates =
          at::_foreach_add(group.gradients, group.parameters, group.weight_decay);
      if (group.matrices) adapt(updates, group);
      at::_foreach_mul_(updates, lr);
      // The rate is in the updates, so that a velocity keeps the rates of its time.
      rule_.step(group, updates, /*lr=*/1, /*weight_decay=*/0, scaled);
    });
  }

  [[nodiscard]] State state() const override { return {groups_.state(), {}}; }

 private:
  void adapt(const Tensors& updates, const ParameterGroups::Group& group) const {
    const at::Tensor weights = norms_of(group.parameters);
    const at::Tensor gradients = norms_of(group.gradients);
    const at::Tensor ratios =
        trust_coefficient_ * weights / (gradients + group.weight_decay * weights + epsilon_);
    scale_layerwise(updates, ratios, weights, gradients);
  }

  double trust_coefficient_;
  double epsilon_;
  MomentumRule rule_;
  ParameterGroups groups_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lars(const std::vector<NamedTensor>& parameters,
                                     const OptimizerOptions& options) {
  if (options.trust_coefficient <= 0 || options.epsilon < 0) {
    throw ConfigError(
        fmt::format("optimizer lars: expected trust_coefficient > 0 and epsilon >= 0, got "
                    "trust_coefficient {}, epsilon {}",
                    options.trust_coefficient, options.epsilon));
  }
  return std::make_unique<Lars>(parameters, options);
}

}  // namespace precast::recipes
