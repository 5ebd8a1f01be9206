#include "framework/engine/out_of_memory.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>

namespace precast::engine {

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return true;
  }
  if (dynamic_cast<const c10::Error*>(&error) == nullptr) return false;
  // The CPU allocator, the CUDA runtime and CUDA's libraries have no specific exception for this,
  // only messages.
  constexpr std::array<std::string_view, 3> kWords = {"DefaultCPUAllocator", "out of memory",
                                                      "ALLOC_FAILED"};
  const std::string_view text = error.what();
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

bool is_device_error(const std::exception& error) {
  return dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr ||
         dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr || is_out_of_memory(error);
}

}  // namespace precast::engine
