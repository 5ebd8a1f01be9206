#pragma once

#include <boost/program_options/options_description.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/field_info.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// `NAME=BYTES:ALIGNMENT[:POINTER]`: the layout of a custom field that another program wrote.
inline constexpr const char* kCustomFieldHelp =
    "layout of a custom field that FFCV wrote; NAME=BYTES:ALIGNMENT[:POINTER]: size and alignment "
    "of its metadata, and the position of the pointer to its value, all in bytes";

/// Whether the value is a layout: it has a digit after `=`.
[[nodiscard]] bool is_field_layout(std::string_view value);

/// Removes the layouts, for which is_field_layout() is true, from `values` and parses them.
/// @param setting names the option or key in messages. @throws ConfigError
[[nodiscard]] data::BetonOptions take_layouts(std::vector<std::string>& values,
                                              const std::string& setting);

/// Reads the values of options that accept only layouts. @throws ConfigError for a value of a
/// different form.
[[nodiscard]] data::BetonOptions read_layouts(std::vector<std::string> values,
                                              const std::string& setting);

/// Add the option `--field-layout`, and read its values. If a file is opened with these options, a
/// stop signal (StopSignals) also ends its HTTP requests. @{
void add_layout_option(boost::program_options::options_description& options);
[[nodiscard]] data::BetonOptions read_layouts(const Arguments& arguments);
/// @}

}  // namespace precast::tools
