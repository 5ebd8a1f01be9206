// Functions that read the next bits, codes and coefficients of a scan, both to decode it and to
// skip over it. Compiled for each SIMD target of the including source.

#if defined(PRECAST_DATA_DECODE_SCAN_BITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRECAST_DATA_DECODE_SCAN_BITS_INL_H_
#undef PRECAST_DATA_DECODE_SCAN_BITS_INL_H_
#else
#define PRECAST_DATA_DECODE_SCAN_BITS_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "data/decode/bit_reader.h"
#include "data/decode/huffman_table.h"

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

using Entry = HuffmanTable::Entry;

constexpr unsigned kLast = 63;
/// A zigzag index above kLast but below this value comes from a run that exceeds the block.
constexpr unsigned kFirstOfEnd = HuffmanTable::kEndOfBlock;
/// This many bits always fit into 64 bits after the rest of a partly used byte.
constexpr unsigned kRefilledBits = 56;

/// Copies each member separately. Loading them as one vector would stall if they have just been
/// stored separately.
HWY_INLINE BitReader copy_of(const BitReader& reader) {
  return {reader.next, reader.bits, reader.count};
}

/// Makes at least kRefilledBits bits valid, without a branch (Giesen, "Reading bits in far too many
/// ways").
HWY_INLINE void refill(BitReader& reader) {
  std::uint64_t next = 0;
  std::memcpy(&next, reader.next, sizeof next);
  if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
  reader.bits |= next >> reader.count;
  reader.next += (63 - reader.count) >> 3;
  reader.count |= kRefilledBits;
}

/// The coefficient after a code (T.81, F.2.2.1): bits that begin with 0 encode a negative number.
/// There is no branch, because it would be unpredictable. CPUs use only six bits of a shift's
/// count, so the masks cost nothing.
HWY_INLINE int coefficient(Entry entry, std::uint64_t bits) {
  const std::uint64_t after_code = bits << (entry >> 16 & 63U);
  const unsigned size = HuffmanTable::size(entry);
  const auto value = static_cast<std::int64_t>(after_code >> 1 >> (~size & 63U));
  const std::int64_t is_positive = static_cast<std::int64_t>(after_code) >> 63;
  const std::int64_t to_negative = 1 - (std::int64_t{1} << size);
  return static_cast<int>(value + (~is_positive & to_negative));
}

/// Looks up the entry of the next code. Returns false if the code does not exist.
HWY_INLINE bool look_up(const HuffmanTable& table, const BitReader& reader, Entry& entry) {
  entry = table.lookup()[reader.bits >> (64 - HuffmanTable::kLookupBits)];
  if (HWY_LIKELY(entry != 0)) return true;
  entry = table.find_long(static_cast<std::uint32_t>(reader.bits >> 48));
  return entry != 0;
}

/// Drops bits that were used. @param entry contains their number in its lowest six bits, which are
/// the only bits that a shift uses.
HWY_INLINE void drop(BitReader& reader, std::uint32_t entry) {
  reader.bits <<= entry & 63U;
  reader.count -= entry & 63U;
}

HWY_INLINE bool read_dc(BitReader& reader, const HuffmanTable& table, int& dc) {
  Entry entry = 0;
  refill(reader);
  if (!look_up(table, reader, entry)) return false;
  dc = wrapped_sum(dc, coefficient(entry, reader.bits));
  drop(reader, entry);
  return true;
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggled for each target
