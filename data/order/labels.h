#pragma once

#include <cstddef>
#include <string>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Index of the integer field of that name, or of the first one for "". @throws ConfigError
[[nodiscard]] PRECAST_API std::size_t label_field(const BetonReader& reader,
                                                  const std::string& name);

/// Index of the float field of that name. @throws ConfigError
[[nodiscard]] std::size_t weight_field(const BetonReader& reader, const std::string& name);

}  // namespace precast::data
