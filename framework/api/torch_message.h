#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace precast {

/// An exception's message, without libtorch's stack trace.
[[nodiscard]] inline std::string message_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch != nullptr ? torch->what_without_backtrace() : error.what();
}

/// The first line of message_of(), without the advice on debugging kernels that CUDA's errors
/// contain.
[[nodiscard]] inline std::string first_line(const std::exception& error) {
  const std::string text = message_of(error);
  return text.substr(0, text.find('\n'));
}

}  // namespace precast
