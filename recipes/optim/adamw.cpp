#include "recipes/optim/adamw.h"

#include <ATen/ops/_fused_adamw.h>

#include "recipes/optim/moment_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerInputs& inputs, const MomentOptions& options)
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
    groups_.for_each([&](const ParameterGroups::Group& group) {
      at::_fused_adamw_(group.parameters, group.gradients, group.moments[0], group.moments[1],
                        /*max_exp_avg_sqs=*/{}, Tensors(group.parameters.size(), rule_.steps), lr,
                        rule_.beta1, rule_.beta2, group.weight_decay, rule_.epsilon,
                        /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{},
                        found_inf(scaled));
    });
  }

  ParameterGroups groups_;
  MomentRule rule_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const OptimizerInputs& inputs, const MomentOptions& options) {
  return std::make_unique<AdamW>(inputs, options);
}

}  // namespace precast::recipes
