// The common part of decoding a scan and skipping over it: reading the next bits, and the codes and
// coefficients in them. For each SIMD target for which the including source is compiled.

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
/// Zigzag indices from the last one up to this come from runs that exceed the block.
constexpr unsigned kFirstOfEnd = HuffmanTable::kEndOfBlock;
/// At least this many bits, in whole bytes, fit after the rest of a partly used byte.
constexpr unsigned kRefilledBits = 56;

/// Copies member by member: loading as one vector what was just stored in pieces would stall.
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

/// The coefficient after a code: its bits, where those that begin with 0 mean negative numbers
/// (T.81, F.2.2.1). Without a branch, since it would be unpredictable. Shifts use only six bits of
/// their counts, so the fields of `entry` need no masks.
HWY_INLINE int coefficient(Entry entry, std::uint64_t bits) {
  const std::uint64_t behind = bits << (entry >> 16 & 63U);
  const unsigned size = HuffmanTable::size(entry);
  const auto value = static_cast<std::int64_t>(behind >> 1 >> (~size & 63U));
  const std::int64_t is_positive = static_cast<std::int64_t>(behind) >> 63;
  const std::int64_t to_negative = 1 - (std::int64_t{1} << size);
  return static_cast<int>(value + (~is_positive & to_negative));
}

/// Wraps on overflow, because crafted files can add up differences without limit.
HWY_INLINE int wrapped_sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}

/// Looks up the entry of the next code. Returns false if there is none.
HWY_INLINE bool look_up(const HuffmanTable& table, const BitReader& reader, Entry& entry) {
  entry = table.lookup()[reader.bits >> (64 - HuffmanTable::kLookupBits)];
  if (HWY_LIKELY(entry != 0)) return true;
  entry = table.find_long(static_cast<std::uint32_t>(reader.bits >> 48));
  return entry != 0;
}

/// @param entry its low six bits are a number of bits: a shift uses only those.
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
