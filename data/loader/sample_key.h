#pragma once

#include <cstdint>

namespace precast::data {

/// Identifies one sample of one pass. Together with the seed, it determines all random choices for
/// the sample.
struct SampleKey {
  std::uint64_t sample = 0;
  /// Its position in the pass's global order.
  std::uint64_t position = 0;
  std::int64_t epoch = 0;
};

}  // namespace precast::data
