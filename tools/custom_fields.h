#pragma once

#include <string>
#include <vector>

#include "data/beton/field_info.h"

namespace precast::tools {

/// `NAME=BYTES:ALIGNMENT[:POINTER]`: tells the layout of a custom field that another program wrote.
inline constexpr const char* kCustomFieldHelp =
    "NAME=BYTES:ALIGNMENT[:POINTER]: itemsize and alignment of the metadata of a custom field that "
    "FFCV wrote, and where in it the pointer to its bytes stands";

/// Takes the values of that form, the ones whose `=` is followed by a digit, out of `values`.
/// @param place names the option or key in messages. @throws ConfigError
[[nodiscard]] data::BetonOptions take_layouts(std::vector<std::string>& values,
                                              const std::string& place);

}  // namespace precast::tools
