#pragma once

#include <cstddef>
#include <string_view>

namespace precast::data {

/// The element type of a tensor in host memory. f16 is IEEE half, bf16 the upper half of an f32,
/// boolean a byte of 0 or 1.
enum class ElementType { u8, f32, i64, f64, f16, bf16, i8, i16, i32, u16, u32, u64, boolean };

[[nodiscard]] constexpr std::size_t element_size(ElementType type) {
  constexpr std::size_t kSizes[] = {1, 4, 8, 8, 2, 2, 1, 2, 4, 2, 4, 8, 1};
  return kSizes[static_cast<int>(type)];
}

/// The name in pipelines, options and errors.
[[nodiscard]] constexpr std::string_view element_type_name(ElementType type) {
  constexpr std::string_view kNames[] = {"u8",  "f32", "i64", "f64", "f16", "bf16", "i8",
                                         "i16", "i32", "u16", "u32", "u64", "bool"};
  return kNames[static_cast<int>(type)];
}

}  // namespace precast::data
