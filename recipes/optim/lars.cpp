#include "recipes/optim/lars.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>

#include "recipes/optim/layerwise.h"
#include "recipes/optim/momentum_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

class Lars final : public Optimizer {
 public:
  Lars(const OptimizerInputs& inputs, const LarsOptions& options)
      : trust_coefficient_(options.trust_coefficient),
        epsilon_(options.epsilon),
        rule_(options),
        groups_(inputs.parameters, options, rule_.moments()) {}

  void step(double lr, const std::optional<Scaled>& scaled) override { update(lr, scaled); }
  [[nodiscard]] bool takes_lr_tensor() const override { return true; }
  void step_with(const at::Tensor& lr, const std::optional<Scaled>& scaled) override {
    update(lr, scaled);
  }

  [[nodiscard]] State state() const override { return {groups_.state(), {}}; }

 private:
  template <typename Rate>
  void update(const Rate& lr, const std::optional<Scaled>& scaled) {
    groups_.for_each([&](const ParameterGroups::Group& group) {
      const Tensors updates =
          at::_foreach_add(group.gradients, group.parameters, group.weight_decay);
      if (group.has_matrices) adapt(updates, group);
      at::_foreach_mul_(updates, lr);
      // The learning rate is 1 here, because the updates already contain it: each update enters the
      // velocity with the rate of its step.
      rule_.step(group, updates, /*lr=*/1.0, /*weight_decay=*/0, scaled);
    });
  }

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

void LarsOptions::options(Schema& schema) {
  MomentumOptions::options(schema);
  schema.add("trust_coefficient", &trust_coefficient, "factor of the layer-wise learning rates")
      .above(0);
  schema.add("epsilon", &epsilon, "added to the denominator, to avoid a division by 0").min(0);
}

std::unique_ptr<Optimizer> make_lars(const OptimizerInputs& inputs, const LarsOptions& options) {
  return std::make_unique<Lars>(inputs, options);
}

}  // namespace precast::recipes
