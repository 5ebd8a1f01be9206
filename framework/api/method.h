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
    /// A recipe must not contain both methods.
    not_with,
    /// If both are listed, this method must come later.
    after,
  };
  Kind kind = Kind::not_with;
  /// The other method's registered name. Rules about methods that are not in the recipe have no
  /// effect.
  std::string other;
  /// The reason, as a clause: "both say which weights are evaluated".
  std::string reason;
};

/// A change to the training procedure, such as BlurPool, EMA or MixUp. Every hook is optional;
/// hooks of several methods are called in the recipe's order. A method has no access to the other
/// methods.
class Method : public Stateful {
 public:
  /// Declares the options that the recipe may set, bound to this method's members.
  virtual void options(Schema& /*schema*/) {}
  /// Rules that broken_rules() checks before the run starts. Methods with a step_strategy() need no
  /// rule against each other, because a recipe may have only one of them anyway.
  [[nodiscard]] virtual std::vector<MethodRule> rules() const { return {}; }
  /// Whether the method works with targets of this kind.
  [[nodiscard]] virtual bool accepts(TargetKind /*kind*/) const { return true; }
  /// Edits the plan before anything is built from it. TrainPlan says which fields may change.
  /// @throws ConfigError if the method does not work with the plan.
  virtual void configure(TrainPlan& /*plan*/) const {}
  /// The side in px of the smallest images that on_batch() or the step_strategy() makes from square
  /// images with a side of `size_px`. Before the run starts, a model that is not one of precast's
  /// own architectures is tested with images of this size.
  [[nodiscard]] virtual std::int64_t smallest_side(std::int64_t size_px) const { return size_px; }
  /// Whether the method changes the work of a step during the run, other than through
  /// TrainPlan::image_size_px: it acts only in a part of the run or in every N-th step, or its
  /// effect grows. Measured steps are then not representative of the run: `precast bench step`
  /// warns, and its cost model rejects the recipe. Called after configure().
  [[nodiscard]] virtual bool varies_between_steps() const { return false; }
  /// Called once before the first step with the facts of this run, which include the rank.
  virtual void on_run(const RunFacts& /*run*/) {}
  /// Called once, after the model with its initial weights has been moved to its device, and before
  /// a checkpoint is restored.
  virtual void on_train_begin(Model& /*model*/) {}
  /// Called before the first batch of an epoch, even if the epoch is resumed in the middle.
  virtual void on_epoch_begin(std::int64_t /*epoch*/, Model& /*model*/) {}
  /// Called for each new batch before the forward pass; may replace the batch's tensors.
  /// @param global_step the number of the step in the run: epoch * RunFacts::steps_per_epoch + step
  /// of the epoch.
  virtual void on_batch(Batch& /*batch*/, std::int64_t /*global_step*/) {}
  /// Returns the strategy that replaces the usual forward and backward pass of a step, or null. The
  /// method keeps ownership and returns the same object during the entire run.
  [[nodiscard]] virtual StepStrategy* step_strategy() { return nullptr; }
  /// Called after each backward pass of a step; the micro-batches of a batch together count as one
  /// pass. A StepStrategy may run several passes; only the gradients of the last one are averaged
  /// over the ranks. In fp16, gradients are still multiplied by the gradient scaler's factor.
  /// Override this hook to drop gradients that must not be used, whichever pass computed them.
  virtual void on_backward(Model& /*model*/) {}
  /// Called when the gradients are complete and unscaled, before the optimiser. With
  /// dist.variable_update: parameter_server, they are complete only on rank 0, which updates the
  /// parameters; the hook is called on every rank.
  virtual void on_gradients(Model& /*model*/) {}
  /// Describes on_gradients(), so that an optimiser can do the same in its own pass over the
  /// gradients (Optimizer::step_scaled()) and the hook is not called.
  /// @return a number if on_gradients() only clips the norm over all gradients to that number, like
  /// torch.nn.utils.clip_grad_norm_; kUnbounded if it does nothing; no value if it must be called.
  /// If a value is returned, the gradients that on_step_end() sees may be unclipped and still
  /// multiplied by the loss scale.
  [[nodiscard]] virtual std::optional<double> gradient_bound() const { return std::nullopt; }
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  /// Whether a CUDA graph of the whole step (training.cuda_graphs: step) may contain on_backward()
  /// and on_gradients(). If so, they are called in the first steps of each image size and while a
  /// step is recorded, but not in the steps that replay the recording. Return true only if each
  /// call launches the same work on the same memory and changes nothing on the host, as long as the
  /// same parameters require gradients. A method without these two hooks should return true.
  /// @param world number of ranks, passed because this function is called before on_run().
  [[nodiscard]] virtual bool records_hooks(int /*world*/) const { return false; }
  /// Called after the optimiser's update. @param global_step as in on_batch().
  virtual void on_step_end(Model& /*model*/, std::int64_t /*global_step*/) {}
  /// An object that exists while the model is evaluated. For example, EMA's eval_scope() copies its
  /// averages into the model, and the destructor of the guard restores the weights.
  class EvalGuard {
   public:
    virtual ~EvalGuard() = default;
  };
  [[nodiscard]] virtual std::unique_ptr<EvalGuard> eval_scope(Model& /*model*/) { return nullptr; }
  /// Whether eval_scope() would now replace the weights by averages, as ema and swa do. If so, a
  /// checkpoint contains the weights without averaging, and this method's name; state() must
  /// contain the average of the weight W as the tensor `W.<name of the method>`, which `precast
  /// convert` reads. If this function returns false, eval_scope() is also called when a checkpoint
  /// is saved, and its guard is destroyed at once. If there was a guard, the checkpoint does not
  /// record which weights the run evaluated, and `precast convert` rejects its folder.
  [[nodiscard]] virtual bool evaluates_averages() const { return false; }
};

using MethodRegistry = Registry<Method>;

/// A method of a recipe, with its name.
struct NamedMethod {
  std::string name;
  std::unique_ptr<Method> method;
};

/// One message for each rule that the methods of a recipe break, such as `swa with ema: expected
/// only one of the two: REASON`, and one for each method with a step_strategy() after the first
/// such method.
[[nodiscard]] PRECAST_API std::vector<std::string> broken_rules(
    const std::vector<NamedMethod>& methods);

}  // namespace precast
