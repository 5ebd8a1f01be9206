#pragma once

#include <exception>

#include "framework/core/export.h"

namespace precast::engine {

/// Whether a libtorch exception means that the device or the host has run out of memory. libtorch's
/// allocators, cuDNN and cuBLAS report this with different exceptions and messages.
[[nodiscard]] PRECAST_API bool is_out_of_memory(const std::exception& error);

/// Whether a libtorch exception is an error of the device, not of the values given to libtorch:
/// the device has no memory left, does not implement the operation, or has failed.
[[nodiscard]] PRECAST_API bool is_device_error(const std::exception& error);

}  // namespace precast::engine
