#include "data/decode/huffman_table.h"

#include <algorithm>

namespace precast::data {
namespace {

/// The largest sizes of coefficients in 8-bit baseline files (T.81, F.1.2.1 and F.1.2.2).
constexpr int kMaxDcSize = 11;
constexpr int kMaxAcSize = 10;

bool is_allowed(std::uint8_t symbol, HuffmanTable::Kind kind) {
  if (kind == HuffmanTable::Kind::dc) return symbol <= kMaxDcSize;
  const int run = symbol >> 4, size = symbol & 15;
  // Size 0: end of block (run 0) or sixteen zeros (run 15); other runs only occur in progressive
  // files.
  return size <= kMaxAcSize && (size > 0 || run == 0 || run == 15);
}

}  // namespace

HuffmanTable::Entry HuffmanTable::entry_of(std::uint8_t symbol, int code_length, Kind kind) {
  const unsigned size = kind == Kind::dc ? symbol : symbol & 15U;
  unsigned advance = kind == Kind::dc ? 0 : (symbol >> 4) + 1U;
  if (kind == Kind::ac && symbol == 0) advance = kEndOfBlock;
  const auto code = static_cast<unsigned>(code_length);
  return (code + size) | advance << 8 | code << 16 | size << 24;
}

HuffmanTable::SkipEntry HuffmanTable::skip_entry_of(std::uint32_t bits) const {
  unsigned taken = 0, total_advance = 0;
  while (taken < kSkipBits) {
    // The shift appends zeros that are not in the data, so an entry that needs them is not valid.
    const Entry entry =
        lookup_[(bits << taken & ((1U << kSkipBits) - 1)) >> (kSkipBits - kLookupBits)];
    if (entry == 0 || taken + length(entry) > (taken == 0 ? kMaxSkippedBits : kSkipBits)) break;
    const bool ends = advance(entry) == kEndOfBlock;
    if (!ends && total_advance + advance(entry) > kMaxSkipped) break;
    taken += length(entry);
    total_advance += advance(entry);
    if (ends) break;
  }
  if (taken == 0) total_advance = kNotSkipped;
  return static_cast<SkipEntry>(taken | total_advance << 8);
}

bool HuffmanTable::build(const HuffmanSpec& spec, Kind kind) {
  const std::size_t known = spec.counts.size() + spec.symbols.size();
  if (kind == kind_ && spec_.size() == known &&
      std::equal(spec.counts.begin(), spec.counts.end(), spec_.begin()) &&
      std::equal(spec.symbols.begin(), spec.symbols.end(), spec_.begin() + 16)) {
    return true;
  }
  spec_.clear();
  kind_ = kind;
  if (!std::ranges::all_of(spec.symbols, [&](std::uint8_t s) { return is_allowed(s, kind); }))
    return false;
  lookup_.fill(0);
  std::ranges::copy(spec.symbols, symbols_.begin());
  std::uint32_t code = 0;
  std::uint32_t symbol_index = 0;
  for (int length = 1; length <= 16; ++length) {
    const std::uint32_t count = spec.counts[static_cast<std::size_t>(length - 1)];
    // Also rejects the code of all ones, which T.81 reserves; libjpeg accepts it, but it is rare.
    if (code + count > (1U << length) - 1 && count > 0) return false;
    symbol_offset_[static_cast<std::size_t>(length)] =
        static_cast<std::int32_t>(symbol_index) - static_cast<std::int32_t>(code);
    for (std::uint32_t i = 0; i < count; ++i, ++code, ++symbol_index) {
      if (length > kLookupBits) continue;
      const int rest = kLookupBits - length;
      std::fill_n(lookup_.data() + (code << rest), std::size_t{1} << rest,
                  entry_of(symbols_[symbol_index], length, kind));
    }
    past_codes_[static_cast<std::size_t>(length)] = code << (16 - length);
    code <<= 1;
  }
  if (kind == Kind::ac) {
    for (std::uint32_t bits = 0; bits < skip_lookup_.size(); ++bits)
      skip_lookup_[bits] = skip_entry_of(bits);
  }
  spec_.assign(spec.counts.begin(), spec.counts.end());
  spec_.insert(spec_.end(), spec.symbols.begin(), spec.symbols.end());
  return true;
}

HuffmanTable::Entry HuffmanTable::find_long(std::uint32_t bits) const {
  for (int length = kLookupBits + 1; length <= 16; ++length) {
    if (bits >= past_codes_[static_cast<std::size_t>(length)]) continue;
    const auto symbol_index = static_cast<std::int32_t>(bits >> (16 - length)) +
                              symbol_offset_[static_cast<std::size_t>(length)];
    return entry_of(symbols_[static_cast<std::size_t>(symbol_index)], length, kind_);
  }
  return 0;
}

}  // namespace precast::data
