#pragma once

#include <string>

#include "framework/core/error.h"

namespace precast::data {

/// A producer sent something invalid, could not be joined, or ended before the last batch that the
/// run needs.
class PRECAST_API ProducerError : public Error {
 public:
  explicit ProducerError(const std::string& message, ExitCode code = ExitCode::loader)
      : Error(message, code) {}
};

}  // namespace precast::data
