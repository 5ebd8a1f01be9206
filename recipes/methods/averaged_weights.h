#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "framework/api/method.h"
#include "framework/api/model.h"

namespace precast::recipes {

/// A second set of a model's weights that is evaluated instead of the weights themselves. Used by
/// ema and swa. Contains parameters and floating-point buffers (running statistics), like
/// torch.optim.swa_utils.AveragedModel with use_buffers=True; integer buffers are not averaged.
/// Values are swapped, not tensors, so code that refers to a weight by its address (an optimiser, a
/// captured graph) keeps working. Not thread-safe.
class AveragedWeights {
 public:
  /// Starts from copies of the model's weights. @param method name of the method; state tensors are
  /// called `<state name>.<method>`.
  void start(const std::string& method, const Model& model);
  /// Copies the model's weights.
  void copy(const Model& model);
  /// average += share * (weight - average).
  void move_towards(const Model& model, double share);
  /// Uses the averages as the model's weights until the guard is destroyed.
  [[nodiscard]] std::unique_ptr<Method::EvalGuard> swap_in(const Model& model) const;
  [[nodiscard]] std::vector<NamedTensor> state() const;

 private:
  std::string method_;
  /// One for each floating-point tensor of the model's state, in its order.
  std::vector<at::Tensor> averages_;
  std::vector<std::string> names_;
};

}  // namespace precast::recipes
