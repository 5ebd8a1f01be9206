#include "framework/core/log.h"

#include <cstdio>
#include <string>

namespace precast {

void log_line(std::string_view line) {
  // "\r\033[K" removes a progress line on a terminal; one fwrite keeps the line whole.
  const std::string text = fmt::format("{}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace precast
