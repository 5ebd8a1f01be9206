#include "framework/core/error.h"

#include <fmt/core.h>

#include <system_error>

namespace precast {

Error::Error(const std::string& message, ExitCode code)
    : std::runtime_error(message), code_(code) {}

// Destructors are out of line, so that the type information is only in this library and exceptions
// thrown in one shared library are caught by type in another.
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
