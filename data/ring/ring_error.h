#pragma once

#include <string>
#include <string_view>

#include "framework/core/error.h"

namespace precast::data {

/// Thrown if a ring is invalid or cannot be joined, or if its producer failed or died. If the
/// producer failed, the exit code is the one that it sent; if it died without a message, the exit
/// code is 13.
class PRECAST_API RingError : public Error {
 public:
  explicit RingError(const std::string& message, ExitCode code = ExitCode::loader)
      : Error(message, code) {}
};

/// Thrown if the producer did not admit the consumer, usually because all cells are taken (RING.md:
/// exit code 10 in the reply to a join).
class PRECAST_API RingRefusal : public RingError {
 public:
  using RingError::RingError;
};

/// Removes the prefix "ring: " of a message, so that it can be part of a message that already names
/// the ring.
inline std::string_view without_ring_prefix(std::string_view message) {
  constexpr std::string_view kPrefix = "ring: ";
  if (message.starts_with(kPrefix)) message.remove_prefix(kPrefix.size());
  return message;
}

}  // namespace precast::data
