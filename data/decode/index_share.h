#pragma once

#include <cstdint>

namespace precast::data {

/// The part of an index's `max_bytes` for a file with `part` of the dataset's `samples` samples,
/// rounded down. @param samples not 0.
[[nodiscard]] inline std::uint64_t share_of(std::uint64_t max_bytes, std::uint64_t part,
                                            std::uint64_t samples) {
  // Computed in long double, because the product of the remainder and `part` can have 128 bits.
  const long double rest = static_cast<long double>(max_bytes % samples) *
                           static_cast<long double>(part) / static_cast<long double>(samples);
  return max_bytes / samples * part + static_cast<std::uint64_t>(rest);
}

}  // namespace precast::data
