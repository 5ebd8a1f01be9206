#pragma once

#include <boost/program_options/options_description.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "data/transforms/pipeline.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Adds `--pipeline YAML` and `--config-file FILE`: the crop and the transforms of images, written
/// as in a recipe.
/// @param used the parts of the recipe that the command uses, for the help.
void add_pipeline_options(
    boost::program_options::options_description& options,
    const std::string& used = "plugins, pipeline.train or pipeline.val, and model.in_channels");

/// The pipeline of --pipeline, or pipeline.train or pipeline.val of the recipe of --config-file,
/// with the recipe's plug-ins and those of --plugin. Whatever the pipeline does not set is taken
/// from the standard pipeline of training or evaluation. @return nullopt if neither option is
/// given.
/// @throws ConfigError, also if both are given; IoError.
[[nodiscard]] std::optional<data::Pipeline> read_pipeline(const Arguments& arguments, bool train);

/// The side of the images in px, 1 to 8192, according to the recipe of --config-file: in the last
/// epochs of training, or in evaluation. @return nullopt without --config-file.
/// @throws ConfigError, IoError
[[nodiscard]] std::optional<std::int64_t> read_image_size(const Arguments& arguments, bool train);

}  // namespace precast::tools
