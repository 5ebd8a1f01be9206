#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// The rows of delimited text (RFC 4180): cells in double quotes may hold delimiters, line ends and
/// quotes written twice. Lines end with LF or CRLF; empty ones are left out.
/// @throws DataError naming the line of a quote that is not closed, or is followed by other text.
[[nodiscard]] PRECAST_API std::vector<std::vector<std::string>> parse_delimited(
    std::string_view text, char delimiter, const std::string& place);

}  // namespace precast::data
