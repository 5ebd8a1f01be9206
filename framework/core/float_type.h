#pragma once

#include <cstddef>

namespace precast {

/// The floating-point types that kernels read and write. Kernels compute in float32 and round the
/// results to nearest.
enum class FloatType { f32, f16, bf16 };

[[nodiscard]] constexpr std::size_t bytes_of(FloatType type) {
  return type == FloatType::f32 ? 4 : 2;
}

/// Number of adjacent values that a thread reads or writes at a time: 16 bytes of values, or one
/// value if the `count` values of a row are not a multiple of 16 bytes.
[[nodiscard]] constexpr int pack_of(FloatType type, int count) {
  const int pack = static_cast<int>(16 / bytes_of(type));
  return count % pack == 0 ? pack : 1;
}

}  // namespace precast
