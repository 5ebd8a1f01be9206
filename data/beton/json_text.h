#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "framework/core/export.h"

namespace precast::data {

/// The document in the value of a JSON field: what stands before its first zero byte, as FFCV reads
/// it.
[[nodiscard]] PRECAST_API std::string_view json_text(std::span<const std::byte> value);

/// Documents of files nest no deeper: nlohmann's values are copied and printed recursively, so that
/// a small file could take the whole stack.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// Whether this is a JSON document, also one with what Python's json adds: NaN, Infinity,
/// -Infinity, and halves of surrogate pairs. FFCV stores what json.dumps makes.
[[nodiscard]] PRECAST_API bool is_json(std::string_view text);

/// Parses a document of an untrusted file. @return one that is_discarded() where it is no JSON,
/// nests deeper than kMaxJsonDepth, or holds a whole number that no 64-bit integer is: that would
/// come out rounded.
[[nodiscard]] nlohmann::ordered_json parse_json_within_limits(std::string_view text);

}  // namespace precast::data
