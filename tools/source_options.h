#pragma once

#include <boost/program_options/options_description.hpp>
#include <memory>

#include "data/beton/field_info.h"
#include "data/sources/source.h"
#include "tools/arguments.h"

namespace precast::tools {

/// `--kind`, `--labels`, `--classes` and `--on_corrupt`: what SOURCE is, and how it is read.
void add_source_options(boost::program_options::options_description& options);

/// Opens SOURCE. @param layouts of a .beton file's custom fields, if the user gave some: with them
/// SOURCE is such a file. @throws ConfigError, also for options that say nothing to it; as
/// data::open_source.
[[nodiscard]] std::unique_ptr<data::Source> open_chosen_source(const Arguments& arguments,
                                                               const data::BetonOptions& layouts);

}  // namespace precast::tools
