#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/decode/huffman_table.h"
#include "framework/core/export.h"

namespace precast::data {

/// How a scan with checkpoints is decoded. A segment is the part of the scan from one checkpoint to
/// the next. One loop decodes `lanes` segments alternately, so that the CPU can work on the other
/// segments while it waits for a table lookup of one.
struct LaneShape {
  static constexpr std::size_t kMaxLanes = 4;

  /// Number of segments that are decoded together, at most kMaxLanes. 0: segments are decoded one
  /// after the other, by the loop that also decodes scans without checkpoints.
  std::size_t lanes = 0;
  /// Number of bits of the scan that index the lookup table: 10, 11 or 12.
  int bits = 12;
};

/// The fastest shape for this CPU. Any shape gives the same pixels.
[[nodiscard]] PRECAST_API LaneShape lane_shape_of_cpu();

/// Number of places per block: 64 for its coefficients, and 64 unused places after them. A run that
/// exceeds its block ends in the unused places, where it is detected.
inline constexpr std::size_t kBlockPositions = 128;
inline constexpr std::uint8_t kLastPosition = kBlockPositions - 1;

/// The result of one lookup: a symbol, with those bits of its coefficient that are in the lookup,
/// and a second symbol if the lookup contains all its bits. Most members are bytes, because loading
/// a byte costs fewer instructions than extracting bits.
struct alignas(8) LaneEntry {
  /// Bits of both symbols and their coefficients, at most kMaxBits.
  std::uint8_t bits = 0;
  /// Number of places by which the first coefficient advances Lane::position. 2 for DC, because the
  /// position before a block is one below the block's first place. With kNone or more, the entry
  /// cannot describe the symbol: the new position is past the block's coefficients, so the symbol
  /// is read alone (LaneTables::symbol()).
  std::uint8_t advance = kNone;
  /// The scan's next 64 bits, with those of the lookup set to 0, are shifted right by this number
  /// to get the remaining bits of the first coefficient.
  std::uint8_t shift = 63;
  /// kLastPosition if the last symbol ends the block, else 0.
  std::uint8_t end = 0;
  /// Places from the first to the second coefficient; 0 if there is no second one.
  std::uint8_t second_advance = 0;
  std::int8_t second_value = 0;
  /// The value of the first coefficient as far as the bits in the lookup determine it; its other
  /// bits are added later.
  std::int16_t first_value = 0;

  /// The `advance` of a symbol that an entry cannot describe: kNone in AC tables, kNone + 1 in DC
  /// tables.
  static constexpr std::uint8_t kNone = 64;
  /// Limited because three entries are decoded from 57 bits.
  static constexpr unsigned kMaxBits = 19;
};
static_assert(sizeof(LaneEntry) == 8);

/// One symbol that is decoded alone.
struct LaneSymbol {
  /// Whether the code exists. A code that does not exist counts as one bit that ends the block.
  bool exists = false;
  bool ends_block = true;
  unsigned bits = 1;
  /// Same as LaneEntry::advance; 0 for the end of a block.
  unsigned advance = 0;
  std::int16_t value = 0;
};

/// The Huffman tables of an image's components in the form that lanes use. Components with the same
/// Huffman tables share entries.
class PRECAST_API LaneTables {
 public:
  /// @param tables the DC and the AC table of each component. @param bits number of bits of a
  /// lookup.
  LaneTables(std::span<const HuffmanTable> tables, int bits);

  /// Whether this object was built from the same codes.
  [[nodiscard]] bool has_same_codes(std::span<const HuffmanTable> tables) const;

  [[nodiscard]] int bits() const { return bits_; }
  [[nodiscard]] const LaneEntry* dc(std::size_t component) const {
    return entries_.data() + (first_of_[component] << bits_);
  }
  [[nodiscard]] const LaneEntry* ac(std::size_t component) const {
    return entries_.data() + ((first_of_[component] + 1) << bits_);
  }

  /// @param table dc() or ac() of a component. @param next_bits at least the next 27 bits,
  /// left-aligned.
  [[nodiscard]] LaneSymbol symbol(const LaneEntry* table, std::uint64_t next_bits) const;

 private:
  void fill(std::size_t table, std::size_t ac_table);

  int bits_;
  std::vector<HuffmanTable> sources_;
  /// For each component, the index of its DC table; its AC table follows.
  std::vector<std::size_t> first_of_;
  std::vector<LaneEntry> entries_;
};

/// The LaneTables of recent images. Building them takes about as long as decoding an image, so they
/// are built only when the same Huffman tables occur again.
class PRECAST_API LaneTableCache {
 public:
  /// @return null if no recent image had these tables.
  const LaneTables* find(std::span<const HuffmanTable> tables, int bits);

 private:
  static constexpr std::size_t kMaxCached = 2;
  static constexpr std::size_t kMaxSeen = 8;

  /// The most recently used first.
  std::vector<LaneTables> cached_;
  /// Hashes of tables that were seen once; the oldest is replaced.
  std::vector<std::uint64_t> seen_;
  std::size_t oldest_ = 0;
};

}  // namespace precast::data
