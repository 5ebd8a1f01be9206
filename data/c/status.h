#pragma once

#include <unistd.h>

#include <string>

#include "data/c/precast_data.h"
#include "framework/core/config/node.h"

namespace precast::data::c {

/// Converts the exception being handled to a status, and stores its message for
/// precast_data_error_message().
[[nodiscard]] precast_data_status current_error() noexcept;

/// Runs `body`, which returns a status or throws.
template <typename Body>
[[nodiscard]] precast_data_status guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return current_error();
  }
}

/// Base of all handles. Records the process that created the handle.
class ProcessBound {
 public:
  /// Whether this process created the handle. In a child process, the handle's threads do not
  /// exist, and its mutexes may stay locked forever.
  [[nodiscard]] bool is_own() const { return process_ == ::getpid(); }
  /// @throws DeviceError if another process created the handle.
  void check_process() const;

 private:
  pid_t process_ = ::getpid();
};

/// @throws ConfigError naming the argument.
[[noreturn]] void missing_argument(const char* name);
/// @throws ConfigError naming the argument if it is NULL.
template <typename T>
void check_argument(const T* pointer, const char* name) {
  if (pointer == nullptr) missing_argument(name);
}
/// Returns the object of a handle. @throws ConfigError naming the argument if the handle is NULL;
/// DeviceError if it belongs to another process.
template <typename Handle>
Handle& checked_handle(Handle* handle, const char* name) {
  check_argument(handle, name);
  handle->check_process();
  return *handle;
}

/// Deletes the handle, unless it belongs to another process.
template <typename Handle>
void destroy(Handle* handle) noexcept {
  if (handle != nullptr && handle->is_own()) delete handle;
}

/// Parses a map of options; NULL is an empty map. @param name the name of the text in messages.
/// @throws ConfigError
[[nodiscard]] ConfigNode parse_options(const char* text, const char* name);

}  // namespace precast::data::c
