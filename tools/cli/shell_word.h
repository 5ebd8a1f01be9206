#pragma once

#include <string>

namespace precast::tools {

/// Quotes `text` with apostrophes so that a POSIX shell reads it as one word.
[[nodiscard]] std::string shell_quoted(const std::string& text);

/// shell_quoted(), but without quotes if a shell would not change the text.
[[nodiscard]] std::string shell_word(const std::string& text);

}  // namespace precast::tools
