#pragma once

#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/transforms/pipeline.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// The names of the fields that a model and its loss read from a dataset: those of data.inputs and
/// data.targets. For an empty key, the first suitable field is read, so it depends on the order of
/// the dataset's fields.
struct OutputChoice {
  std::vector<std::string> inputs;
  /// Empty if the loss reads no targets.
  std::vector<std::string> targets;
};

/// @param pipeline the recipe's pipeline for `reader`. @throws DataError if there is no suitable
/// output
[[nodiscard]] OutputChoice choose_outputs(const data::BetonReader& reader, const Recipe& recipe,
                                          const data::Pipeline& pipeline);

/// Compares the fields on which a network was trained with those that will be read from a dataset
/// for an evaluation, for each key that the recipe leaves empty.
/// @param trained empty lists are not compared. @param trained_on its dataset or run, for messages.
/// @param predicts whether targets are not read.
/// @return warnings about fields that the dataset does not have.
/// @throws ConfigError naming data.inputs or data.targets if the dataset has the field of the
/// training, but another one is read; DataError as choose_outputs()
[[nodiscard]] std::vector<std::string> compare_outputs(const OutputChoice& trained,
                                                       const std::string& trained_on,
                                                       const data::BetonReader& dataset,
                                                       const Recipe& recipe, bool predicts = false);

}  // namespace precast::tools
