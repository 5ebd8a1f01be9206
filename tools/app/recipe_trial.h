#pragma once

#include <string>

#include "framework/core/config/node.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// Builds the parts that the recipe names and discards them, because parts check their options in
/// their constructors. A model that is not part of precast also runs on synthetic images of every
/// size. Its number of outputs is model.num_classes, else that of the weights or the dataset if
/// these can be read (errors in them are reported later), else 1.
/// @param path of the recipe; empty: only the command line.
void probe_parts(const Recipe& recipe, const Registries& registries, RecipeUse use,
                 const std::string& path, Diagnostics& diagnostics);

}  // namespace precast::tools
