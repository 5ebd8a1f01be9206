#pragma once

#include <chrono>

namespace precast {

/// The current time in seconds since 1970, as log records store it.
[[nodiscard]] inline double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace precast
