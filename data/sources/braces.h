#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Expands a WebDataset pattern to names, as a shell does: `{000..127}` counts, with as many digits
/// as its first number has, and `{train,val}` lists. Several groups give all combinations, the last
/// one changing fastest. A name without braces stands for itself.
/// @throws ConfigError for a brace that is not closed, a group of another form, and more than a
/// million names.
[[nodiscard]] PRECAST_API std::vector<std::string> expand_braces(std::string_view pattern);

/// `source` itself if it exists, else the expansion of its braces.
[[nodiscard]] PRECAST_API std::vector<std::filesystem::path> source_paths(
    const std::filesystem::path& source);

}  // namespace precast::data
