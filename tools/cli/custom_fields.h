#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <vector>

#include "data/beton/field_info.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `NAME=BYTES:ALIGNMENT[:POINTER]`: tells the layout of a custom field that another program wrote.
inline constexpr const char* kCustomFieldHelp =
    "NAME=BYTES:ALIGNMENT[:POINTER]: itemsize and alignment of the metadata of a custom field that "
    "FFCV wrote, and where in it the pointer to its bytes stands";

/// Takes the values of that form, the ones whose `=` is followed by a digit, out of `values`.
/// @param place names the option or key in messages. @throws ConfigError
[[nodiscard]] data::BetonOptions take_layouts(std::vector<std::string>& values,
                                              const std::string& place);

/// Where nothing else is meant by them. @throws ConfigError for a value of another form.
[[nodiscard]] data::BetonOptions read_layouts(std::vector<std::string> values,
                                              const std::string& place);

/// `--field ...`, for commands where that means no more, and what was given. @{
void add_layout_option(boost::program_options::options_description& options);
[[nodiscard]] data::BetonOptions read_layouts(const Arguments& arguments);
/// @}

}  // namespace precast::tools
