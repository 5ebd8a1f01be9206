#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/transforms/pipeline.h"
#include "framework/api/batch.h"
#include "framework/api/loss.h"
#include "framework/api/model.h"
#include "framework/api/train_plan.h"
#include "tools/app/recipe.h"
#include "tools/app/resolved_run.h"

namespace precast::tools {

/// Consequences of the kind of targets that the recipe's loss declares (Recipe::targets): the
/// number of the model's outputs, and which fields can be targets.

/// The number of outputs for a sample, or for a pixel: model.num_classes if it is set. Otherwise,
/// it is that of count_classes() for class indices, and the width of the target for values and
/// multi-hot labels; masks, and losses without targets, require the key.
/// @param pipeline the recipe's pipeline for `reader`, which determines what the fields become.
/// @param given model.num_classes, or the number for a different dataset; 0: none.
/// @throws ConfigError with the location of the key if the pipeline lacks a field that data.inputs
/// or data.targets names, the first target does not fit the loss, or the number is missing or does
/// not fit; DataError for labels, or pixels of masks, that are not classes, and for multi-hot
/// values outside 0 to 1.
[[nodiscard]] std::int64_t count_outputs(const data::BetonReader& reader, const Recipe& recipe,
                                         const data::Pipeline& pipeline, std::int64_t given);

/// Runs model, loss and metrics on a batch, in evaluation mode and in the plan's precision, and
/// checks the shapes and types of their results. @param model not run, and may be null, if
/// is_own_classifier(); loss and metrics are then run on outputs that are 0. @param batch two
/// synthetic samples of the fields that the recipe reads. @throws ConfigError with the location of
/// the part that does not fit.
void check_parts(Model* model, const TrainPlan& plan, const Loss& loss, const Recipe& recipe,
                 const Batch& batch);

/// Two synthetic samples for check_parts().
struct ProbeBatch {
  Batch batch;
  /// What distinguishes the batch from the other ones, for messages; may be empty.
  std::string context;
};

/// The batches with which a run tests its parts: training batches at each image size of the plan,
/// and one evaluation batch. With training.eval_only, there are no training batches. Batches that
/// differ only in their values occur once.
/// @param train has the fields of training batches; null: images and labels.
/// @param val null: no evaluation batch.
[[nodiscard]] std::vector<ProbeBatch> probe_batches(const ResolvedRun& run, const TrainPlan& plan,
                                                    const data::BetonReader* train,
                                                    const data::BetonReader* val);
/// check_parts() with each of these batches.
void check_parts(Model* model, const TrainPlan& plan, const Loss& loss, const Recipe& recipe,
                 const std::vector<ProbeBatch>& trials);

/// Checks that weights files can store the model. @throws ConfigError naming model.arch and the
/// tensor
void check_state(const Model& model, const Recipe& recipe);

/// Formats a number of outputs, such as `3 classes` or `1 output`.
[[nodiscard]] std::string outputs_text(TargetKind targets, std::int64_t count);

}  // namespace precast::tools
