#pragma once

#include <boost/program_options/options_description.hpp>
#include <optional>

#include "data/transforms/pipeline.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Adds `--pipeline YAML` and `--config-file FILE`: the crop and the transforms of images, written
/// as in a recipe.
void add_pipeline_options(boost::program_options::options_description& options);

/// The pipeline of --pipeline, or pipeline.train or pipeline.val of the recipe of --config-file,
/// with the recipe's plug-ins and those of --plugin. Whatever the pipeline does not set is taken
/// from the standard pipeline of training or evaluation. @return nullopt if neither option is
/// given.
/// @throws ConfigError, also if both are given; IoError.
[[nodiscard]] std::optional<data::Pipeline> read_pipeline(const Arguments& arguments, bool train);

}  // namespace precast::tools
