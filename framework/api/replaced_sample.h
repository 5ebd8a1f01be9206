#pragma once

#include <cstdint>
#include <string>

namespace precast {

/// A sample that cannot be decoded, and the sample that replaces it in batches. Torch-free.
struct ReplacedSample {
  /// Indices in the dataset.
  std::uint64_t sample = 0;
  std::uint64_t by = 0;
  /// How often the sample has been replaced so far.
  std::int64_t times = 0;
  /// The error message of the decoder.
  std::string error;
};

}  // namespace precast
