#pragma once

#include <memory>

#include "framework/api/grad_sync.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/engine/train_step.h"
#include "tools/app/rank_session.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// The parts of a training step, built from a recipe's plan: model, loss, gradient exchange and
/// optimiser. `precast train`, `precast bench step` and tests all use this class, so a benchmark
/// measures the same steps as training runs. Borrows the run and the ranks.
class Assembly {
 public:
  /// @param plan from make_plan(). With dist.sync_bn, the batch norms of all ranks share their
  /// statistics.
  /// @param data the training set, used only by the constructor: it names the classes in
  /// weights_spec(), and the model is tested on synthetic samples with the fields that the recipe
  /// reads. Null: the classes have no names, and the model is tested on images and labels.
  /// @param val the validation set, used only by the constructor to test the evaluation. Null:
  /// evaluation is not tested.
  /// @throws ConfigError if the model does not fit the plan or the data, or if weights files cannot
  /// store it; the errors of build_model().
  Assembly(const ResolvedRun& run, TrainPlan plan, const Registries& registries, RankSession& ranks,
           const data::BetonReader* data = nullptr, const data::BetonReader* val = nullptr);

  [[nodiscard]] const TrainPlan& plan() const { return plan_; }
  [[nodiscard]] Model& model() { return *model_; }
  [[nodiscard]] const Model& model() const { return *model_; }
  /// The model spec to store in weights files.
  [[nodiscard]] const WeightsSpec& weights_spec() const { return weights_spec_; }
  [[nodiscard]] const Loss& loss() const { return *loss_; }
  [[nodiscard]] GradSync& sync() { return *sync_; }
  [[nodiscard]] Optimizer& optimizer() { return *optimizer_; }
  [[nodiscard]] engine::StepParts step_parts();

 private:
  const ResolvedRun& run_;
  RankSession& ranks_;
  TrainPlan plan_;
  std::unique_ptr<Model> model_;
  WeightsSpec weights_spec_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<GradSync> sync_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace precast::tools
