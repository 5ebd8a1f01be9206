#pragma once

#include <exception>
#include <functional>

#include "framework/core/export.h"

namespace precast::engine {

/// Whether a libtorch exception means that the device or the host has run out of memory. libtorch's
/// allocators, cuDNN and cuBLAS all use different messages.
[[nodiscard]] PRECAST_API bool is_out_of_memory(const std::exception& error);

/// Runs `work`. If memory runs out in it, calls `make_room` (may be empty) and, if that returns
/// true, runs `work` once more.
void run_with_room(const std::function<void()>& work, const std::function<bool()>& make_room);

}  // namespace precast::engine
