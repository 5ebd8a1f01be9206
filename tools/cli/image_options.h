#pragma once

#include <boost/program_options/options_description.hpp>

#include "data/sources/source.h"
#include "data/write/image_field.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `image.*`: how `precast write` stores images; data::ImageFieldOptions as a command line says
/// them.
/// @param mode where image.mode is not given.
void add_image_options(boost::program_options::options_description& options,
                       const char* mode = "jpg");
/// What they say, with the seed of --seed. @throws ConfigError, also for one that its image.mode
/// does not heed
[[nodiscard]] data::ImageFieldOptions image_options(const Arguments& arguments);
/// The first of them that stands on the command line, or empty.
[[nodiscard]] std::string given_image_option(const Arguments& arguments);
/// @throws ConfigError if one is given, and no field of a source is an image that heeds it.
void check_image_options(const Arguments& arguments, const std::vector<data::SourceField>& fields);

}  // namespace precast::tools
