#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/api/stateful.h"
#include "framework/api/target_kind.h"
#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"
#include "framework/core/registry.h"

namespace precast {

struct Batch;
struct RunFacts;
class StepStrategy;
struct TrainPlan;

/// A requirement of a method on the other methods of a recipe.
struct MethodRule {
  enum class Kind {
    /// The two exclude each other.
    not_with,
    /// If both are listed, this method must come later.
    after,
  };
  Kind kind = Kind::not_with;
  /// The other method's registered name. Rules about methods that are not in the recipe have no
  /// effect.
  std::string other;
  /// Why, as a clause: "both say which weights are evaluated".
  std::string reason;
};

/// A change to the training procedure, such as BlurPool, EMA or MixUp. Every hook is optional;
/// hooks of several methods run in the recipe's order. A method has no access to the others.
class Method : public Stateful {
 public:
  /// Declares the options that the recipe may set, bound to this method's members.
  virtual void options(Schema& /*schema*/) {}
  /// Rules that are checked before the run starts (check_rules). Methods with a step_strategy()
  /// need no rule against each other: at most one of them is accepted anyway.
  [[nodiscard]] virtual std::vector<MethodRule> rules() const { return {}; }
  /// Whether the method works with targets of this kind.
  [[nodiscard]] virtual bool accepts(TargetKind /*kind*/) const { return true; }
  /// Edits the plan before anything is built from it. @throws ConfigError if the method does not
  /// work with the plan
  virtual void configure(TrainPlan& /*plan*/) const {}
  /// Called once before the first step with the facts of this run; each rank has its own facts.
  virtual void on_run(const RunFacts& /*run*/) {}
  /// Called once, after the model with its initial weights has been moved to its device, and before
  /// a checkpoint is restored.
  virtual void on_train_begin(Model& /*model*/) {}
  /// Called before the first batch of an epoch, even if the epoch is resumed in the middle.
  virtual void on_epoch_begin(std::int64_t /*epoch*/, Model& /*model*/) {}
  /// Called for each new batch before the forward pass; may replace images and labels.
  virtual void on_batch(Batch& /*batch*/, std::int64_t /*global_step*/) {}
  /// Returns the strategy that replaces the usual forward and backward pass of a step, or null. The
  /// method keeps ownership and returns the same object during the entire run.
  [[nodiscard]] virtual StepStrategy* step_strategy() { return nullptr; }
  /// Called after each backward pass of a step: a StepStrategy may do several, and only the
  /// gradients of the last one are averaged over the ranks. In fp16, gradients are still multiplied
  /// by the gradient scaler's factor. Override it to drop gradients that must not be used after any
  /// of these passes.
  virtual void on_backward(Model& /*model*/) {}
  /// Called when the gradients are complete and unscaled, before the optimiser.
  virtual void on_gradients(Model& /*model*/) {}
  /// Says what on_gradients() does, so that an optimiser may do it in its own pass over the
  /// gradients (Optimizer::step_scaled()); the hook is then not called. A number: it clips the norm
  /// over all gradients to it, like torch.nn.utils.clip_grad_norm_, and does nothing else;
  /// kUnbounded: it does nothing. No value: it must be called. If there is a value, the gradients
  /// that on_step_end() sees may be multiplied by the loss scale and not clipped.
  [[nodiscard]] virtual std::optional<double> gradient_bound() const { return std::nullopt; }
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  /// Whether a CUDA graph of the whole step (training.cuda_graphs: step) may contain on_backward()
  /// and on_gradients(). They are then called in the first steps of each image size and while a
  /// step is recorded, but not in the steps that replay it. So the result is true only if, as long
  /// as the same parameters require gradients, each call launches the same work on the same memory
  /// and changes nothing on the host. A method without these hooks should return true.
  /// @param world number of ranks; called before on_run().
  [[nodiscard]] virtual bool records_hooks(int /*world*/) const { return false; }
  /// Called after the optimiser's update.
  virtual void on_step_end(Model& /*model*/, std::int64_t /*global_step*/) {}
  /// Exists while the model is evaluated. For example, EMA swaps its weights in, and the destructor
  /// swaps them back.
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

/// One message for each rule that the methods of a recipe break: `ema with swa: expected one of the
/// two. ...`.
[[nodiscard]] PRECAST_API std::vector<std::string> broken_rules(
    const std::vector<NamedMethod>& methods);

}  // namespace precast
