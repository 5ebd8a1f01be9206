#pragma once

#include <string>

#include "framework/core/error.h"

namespace precast::data {

/// A program that makes batches sent something invalid, or ended before the last batch.
class PRECAST_API ProducerError : public Error {
 public:
  explicit ProducerError(const std::string& message, ExitCode code = ExitCode::loader)
      : Error(message, code) {}
};

}  // namespace precast::data
