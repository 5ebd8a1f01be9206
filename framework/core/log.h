#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "framework/core/export.h"

namespace precast {

/// Writes a human-readable line to standard error (standard output is for results). Thread-safe: a
/// line is written with one call and is never mixed with a progress line. A line that cannot be
/// written (a closed terminal, a full disk) is lost without an error.
PRECAST_API void log_line(std::string_view line);

/// Writes the text to standard error immediately and unchanged. Text that cannot be written is lost
/// without an error. Thread-safe.
PRECAST_API void write_stderr(std::string_view text) noexcept;

/// Opens /dev/null in place of each standard stream that is closed (`2>&-`). Otherwise a file that
/// is opened later could get the descriptor number of standard error, and log lines would be
/// written into that file. Call at the start of main().
PRECAST_API void open_closed_streams() noexcept;

template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line("warning: " + fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace precast
