#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/decode/baseline_header.h"
#include "framework/core/export.h"

namespace precast::data {

/// One Huffman table of a JPEG, prepared for decoding: one lookup decodes a code of up to
/// kLookupBits bits.
class PRECAST_API HuffmanTable {
 public:
  static constexpr int kLookupBits = 9;

  /// The meaning of a code (T.81, F.1.2), in 32 bits so that it stays in a register. Bits 0-7:
  /// length of code and coefficient together, in bits; 8-15: advance in the block (zeros before the
  /// coefficient, plus one; 0 in DC tables); 16-23: length of the code alone; 24-31: length of the
  /// coefficient. The entry 0 means that the code is longer than the lookup, or does not exist.
  using Entry = std::uint32_t;
  [[nodiscard]] static constexpr unsigned length(Entry entry) { return entry & 0xFFU; }
  [[nodiscard]] static constexpr unsigned advance(Entry entry) { return entry >> 8 & 0xFFU; }
  [[nodiscard]] static constexpr unsigned code_length(Entry entry) { return entry >> 16 & 0xFFU; }
  [[nodiscard]] static constexpr unsigned size(Entry entry) { return entry >> 24; }
  /// The advance of the symbol that ends a block.
  static constexpr unsigned kEndOfBlock = 96;

  /// Used to skip over a block: describes one or more symbols whose codes are in the next kSkipBits
  /// bits. Bits 0-7: length of codes and coefficients together, in bits; 8-15: advance in the
  /// block, at most kMaxSkipped, plus kEndOfBlock if the last symbol ends the block. kNotSkipped:
  /// no symbol can be determined, or the first one takes more than kMaxSkippedBits.
  using SkipEntry = std::uint16_t;
  static constexpr int kSkipBits = 11;
  static constexpr unsigned kMaxSkippedBits = 18;
  static constexpr unsigned kMaxSkipped = 32;
  static constexpr unsigned kNotSkipped = 192;

  enum class Kind { dc, ac };

  /// Builds the table, or keeps it if it was already built from `spec`: most files use the same
  /// tables.
  /// @return false if the table is not valid in a baseline file.
  bool build(const HuffmanSpec& spec, Kind kind);

  /// Whether both tables were built from the same codes.
  [[nodiscard]] bool has_same_codes(const HuffmanTable& other) const {
    return kind_ == other.kind_ && spec_ == other.spec_;
  }

  /// The input from which the table was built: HuffmanSpec's counts and symbols.
  [[nodiscard]] std::span<const std::uint8_t> spec() const { return spec_; }

  [[nodiscard]] const Entry* lookup() const { return lookup_.data(); }
  /// Only for AC tables.
  [[nodiscard]] const SkipEntry* skip_lookup() const { return skip_lookup_.data(); }
  /// Finds the entry of a code that is longer than the lookup. @param bits the next 16 bits.
  /// @return 0 if the code does not exist.
  [[nodiscard]] Entry find_long(std::uint32_t bits) const;

 private:
  [[nodiscard]] static Entry entry_of(std::uint8_t symbol, int code_length, Kind kind);

  [[nodiscard]] SkipEntry skip_entry_of(std::uint32_t bits) const;

  std::array<Entry, 1U << kLookupBits> lookup_{};
  std::array<SkipEntry, 1U << kSkipBits> skip_lookup_{};
  /// For each code length: the first 16-bit value (left-aligned) that is above all codes up to this
  /// length, and the offset from a code of this length to the index of its symbol.
  std::array<std::uint32_t, 18> past_codes_{};
  std::array<std::int32_t, 17> symbol_offset_{};
  std::vector<std::uint8_t> spec_;
  std::array<std::uint8_t, 256> symbols_{};
  Kind kind_ = Kind::dc;
};

}  // namespace precast::data
