#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace precast {

/// Whether this is the second or a later byte of a UTF-8 character.
[[nodiscard]] constexpr bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

[[nodiscard]] inline std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

/// The start of `text`, at most `max_bytes` bytes, which ends between two characters. If there
/// is no such position nearby, because the text is not UTF-8, it is cut after `max_bytes` bytes.
[[nodiscard]] constexpr std::string_view utf8_prefix(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  constexpr std::size_t kMaxContinuations = 3;
  std::size_t end = max_bytes;
  while (end > 0 && max_bytes - end < kMaxContinuations && continues_character(text[end])) --end;
  return text.substr(0, continues_character(text[end]) ? max_bytes : end);
}

}  // namespace precast
