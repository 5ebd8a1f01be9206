#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "data/beton/reader.h"

namespace precast::tools {

/// The number as JSON. JSON has only finite numbers, so NaN and infinities become strings.
[[nodiscard]] nlohmann::ordered_json number_json(double value);

/// Summary of all values of a field: the range of the numbers or, for all other types, of the
/// sizes. @param index the index of the field.
/// @param with_labels whether to list every value if it is an int field.
[[nodiscard]] nlohmann::ordered_json describe_values(const data::BetonReader& reader,
                                                     std::size_t index, bool with_labels);

}  // namespace precast::tools
