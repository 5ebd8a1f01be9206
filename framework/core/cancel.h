#pragma once

#include <atomic>

namespace precast {

/// Whether `flag`, by which a caller can request an early end, is not null and is true.
[[nodiscard]] inline bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && *flag;
}

}  // namespace precast
