#pragma once

#include <boost/program_options/options_description.hpp>

namespace precast::tools {

/// `image.*`: how `precast write` stores images; data::ImageFieldOptions as a command line says
/// them.
void add_image_options(boost::program_options::options_description& options);

}  // namespace precast::tools
