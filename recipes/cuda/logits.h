#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/core/float_type.h"

namespace precast::recipes {

/// Logits [rows, classes], contiguous.
struct LogitsShape {
  /// At least 1.
  std::int64_t rows = 0;
  /// At least 1.
  int classes = 0;
  FloatType type = FloatType::f32;
};

[[nodiscard]] constexpr std::size_t logits_bytes(const LogitsShape& shape) {
  return static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.classes) *
         bytes_of(shape.type);
}

}  // namespace precast::recipes
