#pragma once

#include <string>

#include "framework/core/config/node.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// Builds the parts that the recipe names and discards them, because parts check their options in
/// their constructors. A model that is not part of precast and may read images also runs on
/// synthetic images of every size of the run. Its number of outputs is model.num_classes, else (in
/// an evaluation) that of the weights, else that of the dataset, else 1. Errors in these files are
/// reported later.
/// @param path the recipe's file, for messages; empty: only the command line.
void probe_parts(const Recipe& recipe, const Registries& registries, RecipeUse use,
                 const std::string& path, Diagnostics& diagnostics);

}  // namespace precast::tools
