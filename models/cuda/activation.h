#pragma once

#include <cstddef>

namespace precast::models {

/// The type of activations and their gradients. Kernels compute in float32 and round the results
/// to nearest.
enum class ActivationType { f32, f16, bf16 };

[[nodiscard]] constexpr std::size_t bytes_of(ActivationType type) {
  return type == ActivationType::f32 ? 4 : 2;
}

/// Number of adjacent channels that a thread reads or writes at a time: 16 bytes, or one channel if
/// these do not divide `channels`.
[[nodiscard]] constexpr int pack_of(ActivationType type, int channels) {
  const int pack = static_cast<int>(16 / bytes_of(type));
  return channels % pack == 0 ? pack : 1;
}

}  // namespace precast::models
