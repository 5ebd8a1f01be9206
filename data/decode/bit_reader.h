#pragma once

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// The next bits of an unstuffed scan. May read up to 8 bytes past `next` at any time.
struct BitReader {
  const std::uint8_t* next = nullptr;
  /// Left-aligned; `count` of them are valid, and the bits after those are correct too.
  std::uint64_t bits = 0;
  unsigned count = 0;

  /// Begins `skipped_bits` (0 to 7) bits into the byte at `at`.
  void start(const std::uint8_t* at, unsigned skipped_bits) {
    // The partly used byte counts as read, its remaining bits as available.
    next = at + (skipped_bits > 0 ? 1 : 0);
    count = skipped_bits > 0 ? 8 - skipped_bits : 0;
    bits = count > 0 ? std::uint64_t{*at} << (56 + skipped_bits) : 0;
  }
  /// Index of the next bit, counted from `begin`.
  [[nodiscard]] std::size_t position(const std::uint8_t* begin) const {
    return static_cast<std::size_t>(next - begin) * 8 - count;
  }
};

}  // namespace precast::data
