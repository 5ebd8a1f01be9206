#pragma once

#include <string>
#include <string_view>

namespace precast {

/// `text` with the letters A to Z in lower case. All other bytes stay as they are, in any locale.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace precast
