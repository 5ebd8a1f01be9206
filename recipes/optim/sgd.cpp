#include "recipes/optim/sgd.h"

#include <algorithm>
#include <set>
#include <vector>

#include "recipes/optim/fused_sgd.h"
#include "recipes/optim/momentum_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

/// Whether the groups contain all of these parameters, and no others.
bool contain_exactly(const FusedSgd::Groups& groups, const std::vector<at::Tensor>& parameters) {
  std::set<const void*> own;
  for (const ParameterGroups::Group& group : groups)
    for (const at::Tensor& parameter : group.parameters)
      own.insert(parameter.unsafeGetTensorImpl());
  return own.size() == parameters.size() &&
         std::ranges::all_of(parameters, [&](const at::Tensor& parameter) {
           return own.contains(parameter.unsafeGetTensorImpl());
         });
}

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerInputs& inputs, const SgdOptions& options)
      : rule_(options),
        groups_(inputs.parameters, options, rule_.moments()),
        use_fused_(options.fused()),
        fused_sgd_(options.momentum, options.nesterov) {}

  void step(double lr, const std::optional<Scaled>& scaled) override { update(lr, scaled); }
  [[nodiscard]] bool takes_lr_tensor() const override { return true; }
  void step_with(const at::Tensor& lr, const std::optional<Scaled>& scaled) override {
    update(lr, scaled);
  }
  [[nodiscard]] bool step_scaled(const ScaledStep& step) override {
    if (!use_fused_) return false;
    const FusedSgd::Groups groups = groups_with_gradients();
    if (!FusedSgd::can_step(groups) || !contain_exactly(groups, step.parameters)) return false;
    fused_sgd_.step(groups, step);
    return true;
  }

  [[nodiscard]] State state() const override { return {groups_.state(), {}}; }

 private:
  [[nodiscard]] FusedSgd::Groups groups_with_gradients() const {
    FusedSgd::Groups groups;
    groups_.for_each([&](const ParameterGroups::Group& group) { groups.push_back(group); });
    return groups;
  }
  template <typename Rate>
  void update(const Rate& lr, const std::optional<Scaled>& scaled) {
    if (use_fused_) {
      const FusedSgd::Groups groups = groups_with_gradients();
      if (FusedSgd::can_step(groups)) return fused_sgd_.step(groups, lr, scaled);
    }
    groups_.for_each([&](const ParameterGroups::Group& group) {
      rule_.step(group, group.gradients, lr, group.weight_decay, scaled);
    });
  }

  MomentumRule rule_;
  ParameterGroups groups_;
  bool use_fused_;
  FusedSgd fused_sgd_;
};

}  // namespace

void SgdOptions::options(Schema& schema) {
  MomentumOptions::options(schema);
  KernelChoice::options(schema);
}

std::unique_ptr<Optimizer> make_sgd(const OptimizerInputs& inputs, const SgdOptions& options) {
  return std::make_unique<Sgd>(inputs, options);
}

}  // namespace precast::recipes
