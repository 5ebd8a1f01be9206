#pragma once

#include <string>

#include "framework/core/error.h"

namespace precast::data {

/// A ring is invalid or cannot be joined, or its producer failed or died. If the producer failed,
/// the exit code is the one that it sent; if it died without a message, the exit code is 13.
class PRECAST_API RingError : public Error {
 public:
  explicit RingError(const std::string& message, ExitCode code = ExitCode::loader)
      : Error(message, code) {}
};

}  // namespace precast::data
