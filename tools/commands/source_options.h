#pragma once

#include <boost/program_options/options_description.hpp>
#include <memory>
#include <string>
#include <vector>

#include "data/beton/field_info.h"
#include "data/sources/register.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `--source-kind`, the options that each kind of source declares (`--labels`), and `--on-corrupt`:
/// the kind of SOURCE, and how it is read.
void add_source_options(boost::program_options::options_description& options,
                        const data::SourceRegistry& sources);

/// Opens SOURCE. @param layouts of a .beton file's custom fields, if the user gave any: SOURCE is
/// then such a file. @param texts columns of a list of samples to keep as text.
/// @throws ConfigError, including for options that its kind does not have; as data::open_source.
[[nodiscard]] std::unique_ptr<data::Source> open_chosen_source(
    const Arguments& arguments, const data::SourceRegistry& sources,
    const data::BetonOptions& layouts, const std::vector<std::string>& texts = {});

}  // namespace precast::tools
