#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/decode/huffman_table.h"
#include "framework/core/export.h"

namespace precast::data {

/// How a scan with checkpoints is decoded: `lanes` segments alternately, so that the CPU does not
/// wait for the lookup of one of them.
struct LaneShape {
  static constexpr std::size_t kMostLanes = 4;

  /// 0: one segment after the other, with the loop for scans without checkpoints.
  std::size_t lanes = 0;
  /// Of a lookup: 10, 11 or 12.
  int bits = 12;
};

/// The fastest shape for this CPU. Any shape gives the same pixels.
[[nodiscard]] PRECAST_API LaneShape lane_shape_of_cpu();

/// What one lookup decodes: a symbol with its coefficient, and a second symbol if the lookup
/// contains all its bits. Loops read it byte by byte, which costs fewer instructions than shifts.
struct alignas(8) LaneEntry {
  /// Bits of both symbols and their coefficients; kLong: the first code is longer than the lookup,
  /// or does not exist.
  std::uint8_t bits = kLong;
  /// Places from the last one to the first coefficient. 2 for DC: a block ends one place before
  /// the next one (kBlockPlaces).
  std::uint8_t advance = 1;
  /// Of the first code, without its coefficient.
  std::uint8_t code_bits = 0;
  /// 63 - bits of the first coefficient.
  std::uint8_t shift = 63;
  /// kLastPlace if the last symbol ends the block, else 0.
  std::uint8_t end = 0;
  /// Places from the first to the second coefficient; 0 without one.
  std::uint8_t second_advance = 0;
  std::int16_t second_value = 0;

  static constexpr std::uint8_t kLong = 0x80;
};
static_assert(sizeof(LaneEntry) == 8);

/// Number of places that a block occupies: 64 coefficients, then 64 unused places. A damaged run of
/// zeros that exceeds its block ends in the unused places, where it is detected.
inline constexpr std::size_t kBlockPlaces = 128;
inline constexpr std::uint8_t kLastPlace = kBlockPlaces - 1;

/// The Huffman tables of an image's components, as lanes read them. Components with the same tables
/// share them.
class PRECAST_API LaneTables {
 public:
  /// @param tables for each component the DC and the AC table. @param bits of a lookup.
  LaneTables(std::span<const HuffmanTable> tables, int bits);

  /// Whether it was made from these.
  [[nodiscard]] bool decodes_like(std::span<const HuffmanTable> tables) const;

  [[nodiscard]] int bits() const { return bits_; }
  [[nodiscard]] const LaneEntry* dc(std::size_t component) const {
    return entries_.data() + (first_of_[component] << bits_);
  }
  [[nodiscard]] const LaneEntry* ac(std::size_t component) const {
    return entries_.data() + ((first_of_[component] + 1) << bits_);
  }

  /// The first symbol alone. @param table dc() or ac() of a component. @param next_bits
  /// left-aligned. @return an entry that ends the block after a bit, and sets `exists` to false, if
  /// there is no such code.
  [[nodiscard]] LaneEntry symbol(const LaneEntry* table, std::uint64_t next_bits,
                                 bool& exists) const;

 private:
  void fill(std::size_t table, std::size_t ac_table);

  int bits_;
  std::vector<HuffmanTable> sources_;
  /// For each component, the index of its DC table; its AC table follows.
  std::vector<std::size_t> first_of_;
  std::vector<LaneEntry> entries_;
};

/// The LaneTables of recent images. Making them takes about as long as decoding an image, so they
/// are made for tables that come again.
class PRECAST_API LaneTableCache {
 public:
  /// @return null if these tables were not among those of recent images.
  const LaneTables* find(std::span<const HuffmanTable> tables, int bits);

 private:
  static constexpr std::size_t kKept = 2;
  static constexpr std::size_t kRemembered = 8;

  /// The most recent first.
  std::vector<LaneTables> kept_;
  /// Hashes of tables that were seen once; the oldest is replaced.
  std::vector<std::uint64_t> seen_;
  std::size_t oldest_ = 0;
};

}  // namespace precast::data
