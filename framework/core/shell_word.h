#pragma once

#include <string>

#include "framework/core/export.h"

namespace precast {

/// Puts `text` in single quotes, so that a POSIX shell reads it as one word.
[[nodiscard]] PRECAST_API std::string shell_quoted(const std::string& text);

/// shell_quoted(), but without quotes if a shell would not change the text.
[[nodiscard]] PRECAST_API std::string shell_word(const std::string& text);

}  // namespace precast
