#pragma once

#include <cstdint>

namespace precast::data {

/// Divides an index's `max_bytes` among the files of a dataset: returns the share, rounded down, of
/// a file that contains `part` of the dataset's `samples` samples. @param samples not 0.
[[nodiscard]] inline std::uint64_t share_of(std::uint64_t max_bytes, std::uint64_t part,
                                            std::uint64_t samples) {
  // The second product does not overflow below 2^32 samples.
  return max_bytes / samples * part + max_bytes % samples * part / samples;
}

}  // namespace precast::data
