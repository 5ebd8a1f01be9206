#include "data/c/status.h"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "framework/core/error.h"

namespace precast::data::c {
namespace {

thread_local std::string last_message;

precast_data_status status_of(ExitCode code) {
  switch (code) {
    case ExitCode::usage:
      return PRECAST_DATA_CONFIG_ERROR;
    case ExitCode::dataset_invalid:
      return PRECAST_DATA_DATA_ERROR;
    case ExitCode::io:
      return PRECAST_DATA_IO_ERROR;
    case ExitCode::environment:
      return PRECAST_DATA_ENVIRONMENT_ERROR;
    case ExitCode::out_of_memory:
      return PRECAST_DATA_OUT_OF_MEMORY;
    default:
      return PRECAST_DATA_FAILED;
  }
}

/// Stores the message of this thread's last error; an empty message if there is no memory for it.
/// "out of memory" always fits, because std::string stores short texts in the object itself.
precast_data_status set_last_error(precast_data_status status, const char* message) noexcept {
  try {
    last_message = message;
  } catch (...) {
    last_message.clear();
  }
  return status;
}

}  // namespace

precast_data_status current_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return set_last_error(status_of(error.exit_code()), error.what());
  } catch (const std::bad_alloc&) {
    return set_last_error(PRECAST_DATA_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return set_last_error(PRECAST_DATA_FAILED, error.what());
  } catch (...) {
    return set_last_error(PRECAST_DATA_FAILED, "unknown error");
  }
}

void ProcessBound::check_process() const {
  if (is_own()) return;
  throw DeviceError(fmt::format(
      "precast: expected a handle of this process ({}), got one of process {}. A forked process "
      "does not have its parent's threads; open the dataset and the loader in this process",
      ::getpid(), process_));
}

void missing_argument(const char* name) {
  throw ConfigError(fmt::format("precast: expected argument '{}', got NULL", name));
}

ConfigNode parse_options(const char* text, const char* name) {
  Diagnostics diagnostics;
  const std::string yaml = text == nullptr ? "" : text;
  // Allows more values than in a recipe, because a list of class names may be long.
  ConfigNode node = parse_yaml(yaml, name, diagnostics, std::max(kMaxConfigValues, yaml.size()));
  diagnostics.throw_if_errors();
  return node;
}

}  // namespace precast::data::c

extern "C" {

int32_t precast_data_abi_version(void) {
  return PRECAST_DATA_ABI_VERSION;
}

const char* precast_data_version(void) {
  return PRECAST_VERSION;
}

const char* precast_data_error_message(void) {
  return precast::data::c::last_message.c_str();
}
}
