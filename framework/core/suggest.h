#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// A hint for a misspelt name: `Did you mean 'x'?` if one of `known` is similar
/// (Damerau-Levenshtein distance of at most 1, or at most a third of its length), else
/// `Known: a, b, c.`, or `Known: none.` if `known` is empty.
[[nodiscard]] PRECAST_API std::string suggest(std::string_view name,
                                              const std::vector<std::string>& known);

}  // namespace precast
