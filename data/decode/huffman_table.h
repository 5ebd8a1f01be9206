#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/decode/baseline_header.h"

namespace precast::data {

/// One Huffman table of a JPEG, ready for decoding: what the next kLookupBits bits mean is one
/// read.
class HuffmanTable {
 public:
  static constexpr int kLookupBits = 11;
  static constexpr std::uint8_t kOutside = 0x80;
  static constexpr std::uint8_t kEndOfBlock = 96;

  /// A symbol and the bits of the coefficient behind it (T.81, F.1.2).
  struct Entry {
    /// Bits of code and coefficient; 0: the code is longer than the table, or there is none.
    std::uint8_t length = 0;
    /// Places to go on in the block: zeros before the coefficient, plus one. kEndOfBlock at its
    /// end. With kOutside set the coefficient's bits do not fit into the lookup: `value` then holds
    /// length of the code | size << 8.
    std::uint8_t advance = kOutside;
    std::int16_t value = 0;
  };

  enum class Kind { dc, ac };

  /// Builds the table, or keeps it where it is that of `spec` already: most files share theirs.
  /// @return false if no baseline file may have it.
  bool build(const HuffmanSpec& spec, Kind kind);

  [[nodiscard]] const Entry* lookup() const { return lookup_.data(); }
  /// For codes longer than the lookup. @param bits the next 16. @return an entry with kOutside set;
  /// its length is 0 if there is no such code.
  [[nodiscard]] Entry find_long(std::uint32_t bits) const;

 private:
  [[nodiscard]] static Entry entry_of(std::uint8_t symbol, int code_length, Kind kind);
  void fill(const Entry& entry, std::uint32_t code, int code_length);

  std::array<Entry, 1U << kLookupBits> lookup_{};
  /// Per length: the first code, left-aligned to 16 bits, that is too large to have that length;
  /// and what to add to a code of that length to get the place of its symbol.
  std::array<std::uint32_t, 18> past_codes_{};
  std::array<std::int32_t, 17> symbol_offset_{};
  std::vector<std::uint8_t> spec_;
  std::array<std::uint8_t, 256> symbols_{};
  Kind kind_ = Kind::dc;
};

}  // namespace precast::data
