#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/api/stateful.h"
#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "framework/core/registry.h"

namespace precast {

struct Batch;
struct RunFacts;
struct TrainPlan;

/// A change to how training proceeds: BlurPool, EMA, MixUp. Every hook is optional; hooks of
/// several methods run in the recipe's order. Methods never see each other.
class Method : public Stateful {
 public:
  /// Declares the options that the recipe may set, bound to this method's members.
  virtual void options(Schema& /*schema*/) {}
  /// Edits the plan before anything is built from it.
  virtual void configure(TrainPlan& /*plan*/) const {}
  /// Once, before the first step: what this run is. Each rank is told its own.
  virtual void on_run(const RunFacts& /*run*/) {}
  /// Once, when the model is on its device with its first weights; before a checkpoint is restored.
  virtual void on_train_begin(Model& /*model*/) {}
  /// Before the first batch of an epoch, also of one that is taken up in its middle.
  virtual void on_epoch_begin(std::int64_t /*epoch*/, Model& /*model*/) {}
  /// After a batch has arrived, before the forward pass; may replace images and labels.
  virtual void on_batch(Batch& /*batch*/, std::int64_t /*global_step*/) {}
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

}  // namespace precast
