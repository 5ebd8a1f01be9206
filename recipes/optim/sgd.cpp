#include "recipes/optim/sgd.h"

#include "recipes/optim/momentum_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerInputs& inputs, const MomentumOptions& options)
      : rule_(options), groups_(inputs.parameters, options, rule_.moments()) {}

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
      rule_.step(group, group.gradients, lr, group.weight_decay, scaled);
    });
  }

  MomentumRule rule_;
  ParameterGroups groups_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const OptimizerInputs& inputs, const MomentumOptions& options) {
  return std::make_unique<Sgd>(inputs, options);
}

}  // namespace precast::recipes
