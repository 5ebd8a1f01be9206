#pragma once

#include <cstdint>

namespace precast::test {

/// A number in [-0.5, 0.5) with 24 random bits, computed as a hash of (stream, index).
/// tests/golden/toy_model.py has the same function `noise`, so goldens need no stored weights.
inline double noise(std::uint32_t stream, std::uint32_t index) {
  std::uint32_t x = index * 2654435761U + stream * 40503U;
  x ^= x >> 15;
  x *= 2246822519U;
  x ^= x >> 13;
  return static_cast<double>(x >> 8) / 16777216.0 - 0.5;
}

}  // namespace precast::test
