#include "framework/core/log.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace precast {

void log_line(std::string_view line) {
  // "\r\033[K" removes a progress line on a terminal; one fwrite keeps the line in one piece.
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const std::string text = fmt::format("{}{}\n", terminal ? "\r\033[K" : "", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace precast
