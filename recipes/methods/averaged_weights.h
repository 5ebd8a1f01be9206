#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/api/model.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {

/// The base class of ema and swa: a method with a second set of weights, the averages. After their
/// first update, the averages are evaluated instead of the weights. They contain parameters and
/// floating-point buffers (running statistics), like torch.optim.swa_utils.AveragedModel with
/// use_buffers=True; integer buffers are not averaged, and buffers that are not finite at the start
/// (masks of -inf) are copied instead. For an evaluation, the averages are copied into the weights'
/// tensors, and the weights are restored afterwards, so code that refers to a weight by its address
/// (an optimiser, a captured graph) keeps working. Not thread-safe.
/// A derived class updates the averages in on_step_end() and counts the updates.
class AveragingMethod : public MethodWithoutGradientHooks {
 public:
  /// The averages start as copies of the model's weights. Waits for the device.
  void on_train_begin(Model& model) override;
  [[nodiscard]] State state() const override;
  void restore(const std::map<std::string, std::int64_t>& counters) override;
  [[nodiscard]] bool evaluates_averages() const override { return updates_ > 0; }
  [[nodiscard]] std::unique_ptr<EvalGuard> eval_scope(Model& model) override;

 protected:
  /// @param name of the method; state tensors are called `<state name>.<name>`.
  explicit AveragingMethod(std::string name) : name_(std::move(name)) {}

  /// Copies the model's weights into the averages.
  void copy(const Model& model);
  /// average += share * (weight - average).
  void update_averages(const Model& model, double share);

  /// Number of updates that the averages include.
  std::int64_t updates_ = 0;

 private:
  std::string name_;
  /// One for each floating-point tensor of Model::state(), in the same order.
  std::vector<at::Tensor> averages_;
  std::vector<std::string> names_;
  /// The indices of the tensors that are copied instead of averaged.
  std::vector<std::size_t> copied_;
};

}  // namespace precast::recipes
