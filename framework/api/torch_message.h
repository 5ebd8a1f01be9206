#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace precast {

/// The first line of an exception's message, without libtorch's stack trace. In CUDA's errors,
/// advice on debugging kernels follows.
[[nodiscard]] inline std::string first_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace precast
