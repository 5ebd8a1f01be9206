#pragma once

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// The next bits of an unstuffed scan. refill() (scan_bits-inl.h) may read 8 bytes from `next` at
/// any time.
struct BitReader {
  const std::uint8_t* next = nullptr;
  /// The next bits, left-aligned. The first `count` bits are valid; each later bit is 0 or already
  /// has its final value.
  std::uint64_t bits = 0;
  unsigned count = 0;

  /// Starts reading `skipped_bits` bits (0 to 7) into the byte at `at`.
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

/// The sum of a DC coefficient and a difference. It wraps on overflow: in crafted files,
/// differences can add up without limit.
[[nodiscard]] inline int wrapped_sum(int dc, int difference) {
  return static_cast<int>(static_cast<unsigned>(dc) + static_cast<unsigned>(difference));
}

}  // namespace precast::data
