#pragma once

#include <exception>

#include "framework/core/export.h"

namespace precast::engine {

/// Whether a libtorch exception means that the device or the host has run out of memory. libtorch's
/// allocators, cuDNN and cuBLAS all use different messages.
[[nodiscard]] PRECAST_API bool is_out_of_memory(const std::exception& error);

}  // namespace precast::engine
