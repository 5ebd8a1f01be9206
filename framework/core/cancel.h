#pragma once

#include <atomic>

namespace precast {

/// Whether the caller has asked an operation to stop early. A null `flag` means no.
[[nodiscard]] inline bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && *flag;
}

}  // namespace precast
