#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// A hint for a misspelt name: `Did you mean 'x'?` if one of `known` is similar (apart from case, a
/// Damerau-Levenshtein distance of at most 1, or of at most a third of the known name's length);
/// else `Known: a, b, c.`, or `Known: none.` if `known` is empty.
[[nodiscard]] PRECAST_API std::string suggest(std::string_view name,
                                              const std::vector<std::string>& known);

/// Like suggest(), for the end of a message that already lists `known`: `. Did you mean 'x'?`;
/// empty if no name is similar.
[[nodiscard]] PRECAST_API std::string suggest_similar(std::string_view name,
                                                      const std::vector<std::string>& known);

}  // namespace precast
