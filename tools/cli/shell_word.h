#pragma once

#include <string>

namespace precast::tools {

/// `text` as a POSIX shell reads it as one word, between apostrophes.
[[nodiscard]] std::string shell_quoted(const std::string& text);

/// The same, as it is where a shell changes nothing in it.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace precast::tools
