#pragma once

#include <boost/program_options/options_description.hpp>

#include "data/fields/image_field.h"
#include "tools/arguments.h"

namespace precast::tools {

/// `image.*`: how `precast write` stores images; data::ImageFieldOptions as a command line says
/// them.
void add_image_options(boost::program_options::options_description& options);
/// What they say, with the seed of --seed. @throws ConfigError
[[nodiscard]] data::ImageFieldOptions image_options(const Arguments& arguments);
/// Whether one of them stands on the command line.
[[nodiscard]] bool image_options_given(const Arguments& arguments);

}  // namespace precast::tools
