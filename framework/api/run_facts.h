#pragma once

#include <cstdint>

namespace precast {

/// What a method may key its random numbers by.
struct RunFacts {
  /// training.seed
  std::uint64_t seed = 0;
  int rank = 0;
  std::int64_t num_classes = 0;
};

}  // namespace precast
