#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "framework/core/export.h"

namespace precast::data {

/// The document in the value of a JSON field: everything before its first zero byte, as FFCV reads
/// it.
[[nodiscard]] PRECAST_API std::string_view json_text(std::span<const std::byte> value);

/// Maximum nesting depth for parse_json_within_limits(). nlohmann::json copies and prints values
/// recursively, so without a limit a small file could exhaust the stack.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// Whether `text` is a JSON document. Also accepts the extensions of Python's json: NaN, Infinity,
/// -Infinity, and lone surrogates. FFCV stores the output of json.dumps.
[[nodiscard]] PRECAST_API bool is_json(std::string_view text);

/// Parses a document from an untrusted file. @return a value for which is_discarded() holds if the
/// text is not JSON, nests deeper than kMaxJsonDepth, or contains an integer that does not fit in
/// 64 bits (it would be rounded).
[[nodiscard]] nlohmann::ordered_json parse_json_within_limits(std::string_view text);

}  // namespace precast::data
