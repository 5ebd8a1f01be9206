#pragma once

#include <string>

#include "framework/core/config/part.h"

namespace precast::test {

/// A part with options as a recipe writes them: `part_spec("sgd", "{momentum: 0}")`. @throws
/// ConfigError
[[nodiscard]] inline PartSpec part_spec(std::string name, const std::string& options = "") {
  Diagnostics diagnostics;
  PartSpec spec{std::move(name), parse_yaml(options, "options", diagnostics)};
  diagnostics.throw_if_errors();
  return spec;
}

}  // namespace precast::test
