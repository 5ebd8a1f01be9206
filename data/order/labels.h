#pragma once

#include <cstddef>
#include <string>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// Index of the first int field that has class names, else of the first int field; fields().size()
/// if there is no int field. Training does not use this default: without `data.targets`, it uses
/// the first int field.
[[nodiscard]] PRECAST_API std::size_t default_label_field(const BetonReader& reader);

/// Index of the int field `name`, or the default if `name` is "". @throws ConfigError if there is
/// no such field.
[[nodiscard]] PRECAST_API std::size_t label_field(const BetonReader& reader,
                                                  const std::string& name);

/// Index of the float field `name`. @throws ConfigError if there is no such field.
[[nodiscard]] std::size_t weight_field(const BetonReader& reader, const std::string& name);

}  // namespace precast::data
