#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

#include "framework/core/export.h"

namespace precast {

/// Process exit codes; launchers, grids and batch systems act on them.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,
  dataset_invalid = 3,
  checkpoint_invalid = 4,
  io = 5,
  environment = 6,
  loader = 10,
  out_of_memory = 11,
  diverged = 12,
  peer_failed = 13,
  stalled = 14,
  preempted = 85,
};

/// An error that a user can cause or fix. The message reads
/// `component: expected X, got Y (where). hint`; the hint says what to do, where that is known.
/// Bugs in precast are std::logic_error, thrown by require().
class PRECAST_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, ExitCode code = ExitCode::failed);
  ~Error() override;
  [[nodiscard]] ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// An invalid recipe, override or command line.
class PRECAST_API ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(message, ExitCode::usage) {}
  ~ConfigError() override;
};

/// An invalid dataset file or sample.
class PRECAST_API DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(message, ExitCode::dataset_invalid) {}
  ~DataError() override;
};

/// An invalid weights file or checkpoint.
class PRECAST_API CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message)
      : Error(message, ExitCode::checkpoint_invalid) {}
  ~CheckpointError() override;
};

/// A file or another resource of the operating system could not be read or written.
class PRECAST_API IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(message, ExitCode::io) {}
  /// `what path: strerror(errno_value)`.
  IoError(std::string_view what, std::string_view path, int errno_value);
  ~IoError() override;
};

/// An unsuitable environment: a GPU, a driver or a library is missing, has the wrong version or has
/// failed, a thread cannot be started, or the ranks cannot connect.
class PRECAST_API DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message) : Error(message, ExitCode::environment) {}
  ~DeviceError() override;
};

/// Checks an assumption of precast's own code. @throws std::logic_error naming the caller's source
/// location.
PRECAST_API void require(bool holds, std::string_view assumption,
                         std::source_location where = std::source_location::current());

}  // namespace precast
