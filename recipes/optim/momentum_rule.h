#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/api/optimizer.h"
#include "recipes/optim/parameter_groups.h"

namespace precast::recipes {

/// Options of sgd, sgdw and lars.
struct MomentumOptions : DecayOptions {
  double momentum = 0.9;
  /// Whether to use Nesterov's momentum (Sutskever et al., ICML 2013).
  bool nesterov = false;

  void options(Schema& schema);
};

/// The update that sgd, sgdw and lars share, like torch.optim.SGD (dampening 0), with one call of a
/// fused op per group:
///   g = gradient + weight_decay * p;  v = momentum * v + g;  p -= lr * v
/// or, with Nesterov's momentum (Sutskever et al., ICML 2013), p -= lr * (g + momentum * v).
/// When `found_inf` is set, a step changes nothing. Const and thread-safe.
class MomentumRule {
 public:
  /// @throws ConfigError for Nesterov without momentum.
  explicit MomentumRule(const MomentumOptions& options);

  /// The names of the moments that ParameterGroups must store: "momentum" (the velocity), or none
  /// for momentum 0.
  [[nodiscard]] std::vector<std::string> moments() const;
  /// Updates the group's parameters and velocities. @param gradients the gradients of the
  /// parameters, in the same layout; only read.
  /// @param lr a number, or a tensor as in Optimizer::step_with(). @{
  void step(const ParameterGroups::Group& group, const Tensors& gradients, double lr,
            double weight_decay, const std::optional<Optimizer::Scaled>& scaled) const;
  void step(const ParameterGroups::Group& group, const Tensors& gradients, const at::Tensor& lr,
            double weight_decay, const std::optional<Optimizer::Scaled>& scaled) const;
  /// @}

 private:
  template <typename Rate>
  void update(const ParameterGroups::Group& group, const Tensors& gradients, const Rate& lr,
              double weight_decay, const std::optional<Optimizer::Scaled>& scaled) const;

  double momentum_;
  bool nesterov_;
};

}  // namespace precast::recipes
