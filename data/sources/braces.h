#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Expands a WebDataset pattern to names, as a shell does: `{000..127}` is a range of numbers,
/// padded with zeros to the width of the first one, and `{train,val}` is a list of names. Several
/// groups are expanded into all combinations, in which the last group changes fastest. A name
/// without braces is not changed. @throws ConfigError for a brace that is not closed, a group of a
/// different form, and more than a million names.
[[nodiscard]] PRECAST_API std::vector<std::string> expand_braces(std::string_view pattern);

/// Returns `source` itself if it exists, otherwise the expansion of its braces.
[[nodiscard]] PRECAST_API std::vector<std::filesystem::path> source_paths(
    const std::filesystem::path& source);

}  // namespace precast::data
