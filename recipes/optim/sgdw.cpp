#include "recipes/optim/sgdw.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_mul.h>
#include <fmt/format.h>

#include "framework/core/error.h"
#include "recipes/optim/momentum_rule.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {
namespace {

class Sgdw final : public Optimizer {
 public:
  Sgdw(const OptimizerInputs& inputs, const MomentumOptions& options)
      : peak_lr_(inputs.peak_lr),
        rule_(options),
        groups_(inputs.parameters, options, rule_.moments()) {}

  void step(double lr, const std::optional<Scaled>& scaled) override {
    groups_.for_each([&](const ParameterGroups::Group& group) {
      shrink(group, group.weight_decay * (lr / peak_lr_), scaled);
      rule_.step(group, group.gradients, lr, /*weight_decay=*/0, scaled);
    });
  }

  [[nodiscard]] State state() const override { return {groups_.state(), {}}; }

 private:
  static void shrink(const ParameterGroups::Group& group, double share,
                     const std::optional<Scaled>& scaled) {
    if (share == 0) return;
    if (scaled) {
      // If the flag, which is on the device, is set, the factor is exactly 1.
      at::_foreach_mul_(group.parameters, 1 - (1 - scaled->found_inf) * share);
    } else {
      at::_foreach_mul_(group.parameters, 1 - share);
    }
  }

  double peak_lr_;
  MomentumRule rule_;
  ParameterGroups groups_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgdw(const OptimizerInputs& inputs,
                                     const MomentumOptions& options) {
  if (inputs.peak_lr <= 0) {
    throw ConfigError(
        fmt::format("optimizer sgdw: expected a peak learning rate > 0, got {}. Its decay is "
                    "relative to that: set lr.lr.",
                    inputs.peak_lr));
  }
  return std::make_unique<Sgdw>(inputs, options);
}

}  // namespace precast::recipes
