#pragma once

#include <memory>

#include "framework/api/grad_sync.h"
#include "framework/engine/train_step.h"
#include "tools/app/rank_session.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// What takes training steps, made of a recipe's plan: model, loss, gradient exchange, optimizer.
/// `precast train`, `precast bench step` and tests are built on this one assembly, so that a
/// benchmark measures what trains. Borrows the recipe's methods and the ranks.
class Assembly {
 public:
  /// @param plan as make_plan(); statistics of batch norms are shared by the ranks if the recipe
  /// says so.
  /// @param data the training set, borrowed while this is made: the model is tried on what the
  /// recipe reads of it; null: on images and labels.
  /// @throws ConfigError for a model that does not fit the plan or the data.
  Assembly(Recipe& recipe, TrainPlan plan, const Registries& registries, RankSession& ranks,
           at::Device device, const data::BetonReader* data = nullptr);

  [[nodiscard]] const TrainPlan& plan() const { return plan_; }
  [[nodiscard]] Model& model() { return *model_; }
  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const Loss& loss() const { return *loss_; }
  [[nodiscard]] GradSync& sync() { return *sync_; }
  [[nodiscard]] Optimizer& optimizer() { return *optimizer_; }
  [[nodiscard]] engine::StepParts step_parts();

 private:
  Recipe& recipe_;
  RankSession& ranks_;
  TrainPlan plan_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Loss> loss_;
  std::unique_ptr<GradSync> sync_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace precast::tools
