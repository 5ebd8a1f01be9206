#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "framework/core/export.h"

namespace precast {

/// Lines for people, on standard error (standard output carries results). Thread-safe: a line is
/// written at once and never mixes with a progress line.
PRECAST_API void log_line(std::string_view line);

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line("warning: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace precast
