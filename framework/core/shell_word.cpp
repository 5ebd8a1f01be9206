#include "framework/core/shell_word.h"

#include <string_view>

namespace precast {

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:,@%";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos;
  return plain ? text : shell_quoted(text);
}

}  // namespace precast
