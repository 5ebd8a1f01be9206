#pragma once

#include <cstddef>

namespace precast::data {

/// What the values of a tensor in host memory are. f16 is IEEE half, bf16 the upper half of an f32.
enum class ElementType { u8, f32, i64, f64, f16, bf16 };

[[nodiscard]] constexpr std::size_t element_size(ElementType type) {
  constexpr std::size_t kSizes[] = {1, 4, 8, 8, 2, 2};
  return kSizes[static_cast<int>(type)];
}

}  // namespace precast::data
