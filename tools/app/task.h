#pragma once

#include <cstdint>
#include <string>

#include "data/beton/reader.h"
#include "data/transforms/pipeline.h"
#include "framework/api/loss.h"
#include "framework/api/model.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// What follows from the kind of targets that the recipe's loss declares (Recipe::targets): how
/// many outputs the model has, and which fields fit it.

/// The number of outputs of a sample, or of a pixel: model.num_classes, else for class indices the
/// largest label + 1, for values and multi-hot labels the width of the target; masks, and losses
/// without targets, need the key.
/// @param pipeline the recipe's for `reader`: what becomes of the fields. @param given
/// model.num_classes, or the number of another dataset; 0: none.
/// @throws ConfigError with the place of the key if the pipeline lacks a field that data.inputs or
/// data.targets names, the first target does not fit the loss, or the number is missing or another
/// one; DataError for labels that are not classes.
[[nodiscard]] std::int64_t count_outputs(const data::BetonReader& reader, const Recipe& recipe,
                                         const data::Pipeline& pipeline, std::int64_t given);

/// Runs model, loss and metrics on a batch, in evaluation mode. Does nothing for one of precast's
/// own architectures that classifies images. @param batch two synthetic samples of the fields
/// that the recipe reads. @throws ConfigError with the place of the part that does not fit.
void check_parts(Model& model, const ModelSpec& spec, const Loss& loss, const Recipe& recipe,
                 const Batch& batch);

/// `3 classes`, `1 output`.
[[nodiscard]] std::string outputs_text(TargetKind targets, std::int64_t count);

}  // namespace precast::tools
