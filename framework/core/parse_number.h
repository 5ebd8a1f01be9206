#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace precast {

/// Parses all of `text` as a decimal number, in the format of std::from_chars: without spaces or a
/// leading '+'; `inf` and `nan` are numbers if T is a floating-point type. Returns nothing for any
/// other text, including an empty one, and for a number that T cannot represent.
template <typename T>
[[nodiscard]] std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

}  // namespace precast
