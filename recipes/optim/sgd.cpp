#include "recipes/optim/sgd.h"

#include <vector>

#include "recipes/optim/fused_sgd.h"
#include "recipes/optim/momentum_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerInputs& inputs, const SgdOptions& options)
      : rule_(options), groups_(inputs.parameters, options, rule_.moments()) {
    if (options.fused()) fused_ = make_fused_sgd(options.momentum, options.nesterov);
  }

  void step(double lr, const std::optional<Scaled>& scaled) override {
    if (fused_ && fused_step(lr, scaled)) return;
    update(lr, scaled);
  }
  /// The fused kernel takes the rate as a number.
  [[nodiscard]] bool takes_lr_tensor() const override { return fused_ == nullptr; }
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
  /// Returns false if the kernel cannot update these parameters.
  bool fused_step(double lr, const std::optional<Scaled>& scaled) {
    std::vector<ParameterGroups::Group> groups;
    groups_.for_each([&](const ParameterGroups::Group& group) { groups.push_back(group); });
    if (!fused_->can_step(groups)) return false;
    fused_->step(groups, lr, scaled);
    return true;
  }

  MomentumRule rule_;
  ParameterGroups groups_;
  std::unique_ptr<FusedSgd> fused_;
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
