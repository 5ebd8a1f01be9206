#pragma once

#include <cstddef>
#include <string>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Index of the integer field `name`, or of the first integer field if `name` is "". @throws
/// ConfigError if there is no such field.
[[nodiscard]] PRECAST_API std::size_t label_field(const BetonReader& reader,
                                                  const std::string& name);

/// Index of the float field `name`. @throws ConfigError if there is no such field.
[[nodiscard]] std::size_t weight_field(const BetonReader& reader, const std::string& name);

}  // namespace precast::data
