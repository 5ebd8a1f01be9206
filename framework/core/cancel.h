#pragma once

#include <atomic>

namespace precast {

/// Whether a flag that asks for an early end was given and is true.
[[nodiscard]] inline bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && *flag;
}

}  // namespace precast
