#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "framework/api/batch_source.h"
#include "framework/api/method.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "framework/engine/evaluator.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// A model with the weights of `model.weights`, on its device: for eval and predict. Borrows the
/// recipe.
struct EvalModel {
  ResolvedRun run;
  TrainPlan plan;
  std::unique_ptr<Model> model;
  engine::Evaluator evaluator;
  /// While they exist, the model has the averages of a checkpoint's methods (ema, swa).
  std::vector<std::unique_ptr<Method::EvalGuard>> averages;
};

/// @throws ConfigError if the recipe does not name any weights.
void check_weights_given(const TrainConfig& config);

/// Determines the number of outputs: `model.num_classes`, else that of the weights, else that of
/// the targets.
/// @param reader the dataset with these targets; null: there are none.
/// @param labels_matter whether to check that every label is a valid class.
/// @throws ConfigError if none of them is known.
[[nodiscard]] std::int64_t count_eval_outputs(const Recipe& recipe, const data::BetonReader* reader,
                                              bool labels_matter);

/// @param labels the dataset whose classes are compared with those of the weights; null: none.
/// @param checkpoint the folder of a checkpoint whose weights are model.weights; empty: none.
[[nodiscard]] EvalModel make_eval_model(const Recipe& recipe, const Registries& registries,
                                        std::int64_t classes, const data::BetonReader* labels,
                                        const std::filesystem::path& checkpoint = {});

/// The samples of a dataset for the model, in file order. Borrows `reader`.
struct EvalSource {
  std::unique_ptr<BatchSource> source;
  /// Forward passes whose outputs are summed for each sample: 2 if the mirrored image is added.
  int passes = 1;
};
/// @throws ConfigError if the model does not accept such samples.
[[nodiscard]] EvalSource open_eval_source(EvalModel& model, const data::BetonReader& reader);

}  // namespace precast::tools
