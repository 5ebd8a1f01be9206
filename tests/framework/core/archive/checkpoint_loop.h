#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace precast::test {

/// The step of the n-th save of checkpoint_loop, which saves every step twice; the second save
/// replaces the first.
inline std::int64_t step_of_save(std::int64_t n) {
  return n / 2;
}

/// The bytes of one file of the n-th save; no other file or save has the same bytes.
inline std::vector<std::byte> content_of_save(std::int64_t n, int file, std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  std::uint64_t state = static_cast<std::uint64_t>(n) * 16 + static_cast<std::uint64_t>(file);
  for (std::size_t i = 0; i + sizeof state <= size_bytes; i += sizeof state) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::memcpy(&bytes[i], &state, sizeof state);
  }
  return bytes;
}

}  // namespace precast::test
