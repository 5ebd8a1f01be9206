#pragma once

#include <boost/program_options/options_description.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/beton/field_info.h"
#include "data/sources/register.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// Declares the options that say what SOURCE is and how it is read: `--source-kind`, the options of
/// each kind of source (such as `--labels`), and `--on-corrupt`.
void add_source_options(boost::program_options::options_description& options,
                        const data::SourceRegistry& sources);

/// The given options of add_source_options(), quoted for a shell: ` --labels FILE`.
[[nodiscard]] std::string given_source_options(const Arguments& arguments,
                                               const data::SourceRegistry& sources);

/// Opens SOURCE.
/// @param layouts layouts of custom fields, and the options for reading a URL. If there are
/// layouts, SOURCE is opened as a .beton file.
/// @param columns for a source of kind table: the names of columns to add to those on the command
/// line, by option (such as `texts`).
/// @throws ConfigError for options that the kind of SOURCE does not have; the errors of
/// data::open_source().
[[nodiscard]] std::unique_ptr<data::Source> open_chosen_source(
    const Arguments& arguments, const data::SourceRegistry& sources,
    const data::BetonOptions& layouts,
    const std::map<std::string, std::vector<std::string>>& columns = {});

}  // namespace precast::tools
