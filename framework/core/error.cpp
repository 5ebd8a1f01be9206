#include "framework/core/error.h"

#include <fmt/core.h>

#include <system_error>

namespace precast {

Error::Error(const std::string& message, ExitCode code)
    : std::runtime_error(message), code_(code) {}

// The destructors are defined here, so that the type information exists only in this library.
// Otherwise, a shared library might not recognise the type of an exception that another one threw.
Error::~Error() = default;
ConfigError::~ConfigError() = default;
DataError::~DataError() = default;
CheckpointError::~CheckpointError() = default;
IoError::~IoError() = default;
DeviceError::~DeviceError() = default;

IoError::IoError(std::string_view what, std::string_view path, int errno_value)
    : Error(fmt::format("{} {}: {}", what, path, std::generic_category().message(errno_value)),
            ExitCode::io) {}

void require(bool holds, std::string_view assumption, std::source_location where) {
  if (holds) return;
  throw std::logic_error(
      fmt::format("{}:{}: broken assumption: {}", where.file_name(), where.line(), assumption));
}

}  // namespace precast
