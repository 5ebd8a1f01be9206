#include "data/decode/checkpoints.h"

namespace precast::data {
namespace {

constexpr unsigned kPositionBits = 28;
constexpr unsigned kDcBits = 12;
constexpr int kDcBias = 1 << (kDcBits - 1);

}  // namespace

std::optional<std::uint64_t> ScanCheckpoint::packed() const {
  if (bit >> kPositionBits != 0) return std::nullopt;
  std::uint64_t value = bit;
  unsigned shift = kPositionBits;
  for (const int coefficient : dc) {
    const int biased = coefficient + kDcBias;
    if (biased < 0 || biased >> kDcBits != 0) return std::nullopt;
    value |= static_cast<std::uint64_t>(biased) << shift;
    shift += kDcBits;
  }
  return value;
}

ScanCheckpoint ScanCheckpoint::unpacked(std::uint64_t packed) {
  ScanCheckpoint point{.bit = packed & ((std::uint64_t{1} << kPositionBits) - 1), .dc = {}};
  unsigned shift = kPositionBits;
  for (int& coefficient : point.dc) {
    coefficient = static_cast<int>(packed >> shift & ((1U << kDcBits) - 1)) - kDcBias;
    shift += kDcBits;
  }
  return point;
}

}  // namespace precast::data
