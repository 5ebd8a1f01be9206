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
      if (group.weight_decay != 0) decay_weights(group, decay(group, lr), scaled);
      rule_.step(group, group.gradients, lr, /*weight_decay=*/0, scaled);
    });
  }

  /// The fraction by which a step decays the weights.
  [[nodiscard]] double decay(const ParameterGroups::Group& group, double lr) const {
    return group.weight_decay * (lr / peak_lr_);
  }
  /// Computed in double, like the overload above. decay_weights() converts the result to float32 at
  /// the point where an op with a double scalar would, so that both overloads round in the same
  /// way.
  [[nodiscard]] at::Tensor decay(const ParameterGroups::Group& group, const at::Tensor& lr) const {
    return lr.to(at::kDouble).div_(peak_lr_).mul_(group.weight_decay);
  }

  static void decay_weights(const ParameterGroups::Group& group, const at::Tensor& decay,
                            const std::optional<Scaled>& scaled) {
    const at::Tensor factor =
        scaled ? 1 - (1 - scaled->found_inf) * decay.to(at::kFloat) : (1 - decay).to(at::kFloat);
    at::_foreach_mul_(group.parameters, factor);
  }
  static void decay_weights(const ParameterGroups::Group& group, double decay,
                            const std::optional<Scaled>& scaled) {
    if (scaled) {
      // The flag is on the device. If it is set, the factor is exactly 1.
      at::_foreach_mul_(group.parameters, 1 - (1 - scaled->found_inf) * decay);
    } else {
      at::_foreach_mul_(group.parameters, 1 - decay);
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
        fmt::format("optimizer sgdw: expected a peak learning rate > 0, got {}. Set lr.lr: the "
                    "weight decay is relative to the peak",
                    inputs.peak_lr));
  }
  return std::make_unique<Sgdw>(inputs, options);
}

}  // namespace precast::recipes
