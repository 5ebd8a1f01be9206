#pragma once

#include <cstddef>

namespace precast {

/// The types of floats that kernels read and write. They compute in float32 and round the results
/// to nearest.
enum class FloatType { f32, f16, bf16 };

[[nodiscard]] constexpr std::size_t bytes_of(FloatType type) {
  return type == FloatType::f32 ? 4 : 2;
}

/// Number of adjacent values that a thread reads or writes at a time: 16 bytes, or one value if
/// these do not divide the `count` values of a row.
[[nodiscard]] constexpr int pack_of(FloatType type, int count) {
  const int pack = static_cast<int>(16 / bytes_of(type));
  return count % pack == 0 ? pack : 1;
}

}  // namespace precast
