#pragma once

#include <cstdint>
#include <span>

#include "data/decode/lane_tables.h"
#include "framework/core/export.h"

namespace precast::data {

/// A lane: a segment of a scan that is decoded in an interleaved loop with other segments.
struct Lane {
  /// The next bit, as an index into the bits of LaneScan::bytes.
  std::uint64_t bit = 0;
  /// kBlockPositions * block + zigzag index of the next coefficient; kBlockPositions * block - 1
  /// before the block.
  std::uint64_t position = 0;
  /// `position` after the last block. A lane that has reached it may have decoded up to kMaxOverrun
  /// more entries.
  std::uint64_t end = 0;
  /// The bit at which the last block ended. Set when the lane has reached `end`.
  std::uint64_t end_bit = 0;
  const LaneEntry* table = nullptr;
};
inline constexpr std::size_t kMaxOverrun = 2;

/// A block's coefficients in zigzag order, followed by the unused places (kBlockPositions).
struct alignas(64) LaneBlock {
  std::int16_t coefficients[64] = {};
  std::int16_t after[kBlockPositions - 64];
};
static_assert(sizeof(LaneBlock) == kBlockPositions * sizeof(std::int16_t));

/// The data that all lanes of an image read and write.
struct LaneScan {
  /// The unstuffed scan. Each lane reads at most kBytesPerBlock bytes per block, plus kBytesAhead.
  const std::uint8_t* bytes = nullptr;
  /// The output; all coefficients must be zero before decoding. DC coefficients are differences.
  LaneBlock* blocks = nullptr;
  /// For each block: its AC table, and the DC table of the next block.
  const LaneEntry* const* ac = nullptr;
  const LaneEntry* const* next_dc = nullptr;
  const LaneTables* tables = nullptr;
  /// Set if a code does not exist, or if a block has more than 64 coefficients.
  bool damaged = false;
};

/// A block has at most 27 + 63 * 26 bits; in damaged data, every place may take a code of up to 27
/// bits.
inline constexpr std::size_t kBytesPerBlock = 64 * 27 / 8;
inline constexpr std::size_t kBytesAhead = 32;

/// Decodes until at least one lane has reached its end. That lane has then decoded at most
/// kMaxOverrun entries after its last block.
/// @param lanes at most LaneShape::kMaxLanes.
PRECAST_API void run_lanes(LaneScan& scan, std::span<Lane> lanes);

/// Whether this CPU has the instructions that make lanes worthwhile.
[[nodiscard]] bool lanes_are_fast();

}  // namespace precast::data
