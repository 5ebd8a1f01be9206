#pragma once

#include <string>

#include "framework/core/error.h"

namespace precast::data {

/// A ring that is invalid, cannot be joined, or whose producer failed or died; with the exit code
/// that the producer sent, 13 if it died without a message.
class PRECAST_API RingError : public Error {
 public:
  explicit RingError(const std::string& message, ExitCode code = ExitCode::loader)
      : Error(message, code) {}
};

}  // namespace precast::data
