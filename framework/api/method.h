#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/stateful.h"
#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"
#include "framework/core/registry.h"

namespace precast {

struct Batch;
struct RunFacts;
class StepStrategy;
struct TrainPlan;

/// What a method asks of the other methods of a recipe.
struct MethodRule {
  enum class Kind {
    /// The two exclude each other.
    not_with,
    /// Where both are listed, this method comes later.
    after,
  };
  Kind kind = Kind::not_with;
  /// The other method's registered name. One that is not in the recipe asks nothing.
  std::string other;
  /// Why, as a clause: "both say which weights are evaluated".
  std::string reason;
};

/// A change to how training proceeds: BlurPool, EMA, MixUp. Every hook is optional; hooks of
/// several methods run in the recipe's order. Methods never see each other.
class Method : public Stateful {
 public:
  /// Declares the options that the recipe may set, bound to this method's members.
  virtual void options(Schema& /*schema*/) {}
  /// What is checked before the start (check_rules). At most one method replaces the step anyway.
  [[nodiscard]] virtual std::vector<MethodRule> rules() const { return {}; }
  /// Edits the plan before anything is built from it. @throws ConfigError where the two do not fit
  virtual void configure(TrainPlan& /*plan*/) const {}
  /// Once, before the first step: what this run is. Each rank is told its own.
  virtual void on_run(const RunFacts& /*run*/) {}
  /// Once, when the model is on its device with its first weights; before a checkpoint is restored.
  virtual void on_train_begin(Model& /*model*/) {}
  /// Before the first batch of an epoch, also of one that is taken up in its middle.
  virtual void on_epoch_begin(std::int64_t /*epoch*/, Model& /*model*/) {}
  /// After a batch has arrived, before the forward pass; may replace images and labels.
  virtual void on_batch(Batch& /*batch*/, std::int64_t /*global_step*/) {}
  /// What does the passes of a step instead of one forward and one backward; null: nothing does.
  /// The same in the whole run, borrowed.
  [[nodiscard]] virtual StepStrategy* step_strategy() { return nullptr; }
  /// After each backward pass of a step: a StepStrategy may do several, and only the last one's
  /// gradients are averaged over the ranks. In fp16 they are multiplied by the gradient scaler's
  /// factor. For what must not count in any of them.
  virtual void on_backward(Model& /*model*/) {}
  /// After gradients are complete and unscaled, before the optimiser.
  virtual void on_gradients(Model& /*model*/) {}
  /// After the optimiser's update.
  virtual void on_step_end(Model& /*model*/, std::int64_t /*global_step*/) {}
  /// Lives while the model is evaluated: EMA swaps its weights in, and back when the guard goes.
  class EvalGuard {
   public:
    virtual ~EvalGuard() = default;
  };
  [[nodiscard]] virtual std::unique_ptr<EvalGuard> eval_scope(Model& /*model*/) { return nullptr; }
};

using MethodRegistry = Registry<Method>;

/// A method of a recipe, with its name.
struct NamedMethod {
  std::string name;
  std::unique_ptr<Method> method;
};

/// The rules that a recipe's methods break, one message each: `ema with swa: expected one of the
/// two. ...`.
[[nodiscard]] PRECAST_API std::vector<std::string> broken_rules(
    const std::vector<NamedMethod>& methods);

}  // namespace precast
