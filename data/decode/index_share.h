#pragma once

#include <cstdint>

namespace precast::data {

/// The part of an index's `max_bytes` for a file with `part` of the dataset's `samples` samples,
/// rounded down. @param samples not 0.
[[nodiscard]] inline std::uint64_t share_of(std::uint64_t max_bytes, std::uint64_t part,
                                            std::uint64_t samples) {
  // The second product does not overflow below 2^32 samples.
  return max_bytes / samples * part + max_bytes % samples * part / samples;
}

}  // namespace precast::data
