#include "data/decode/lane_kernels.h"

// The code is scalar. The AVX2 target already has the shifts that it needs (BMI2), and wider
// vectors would not help.
#define HWY_DISABLED_TARGETS (HWY_AVX3 | HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/decode/lane_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <bit>
#include <cstring>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

/// This bit of a place's number is set for the unused places after a block's coefficients.
constexpr std::uint64_t kPastBlock = 64;
static_assert(2 * kPastBlock == kBlockPositions);

HWY_INLINE std::uint64_t bits_at(const std::uint8_t* bytes, std::uint64_t bit) {
  std::uint64_t next = 0;
  std::memcpy(&next, bytes + (bit >> 3), sizeof next);
  if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
  return next << (bit & 7U);
}

/// Chooses without a branch, because the CPU cannot predict the end of a block. From plain C++,
/// compilers would generate a branch.
HWY_INLINE const LaneEntry* choose_table(std::uint8_t ends, const LaneEntry* inside,
                                         const LaneEntry* next) {
#if HWY_ARCH_X86_64
  asm("test %[ends], %[ends]\n\tcmovnz %[next], %[inside]"
      : [inside] "+r"(inside)
      : [ends] "q"(ends), [next] "rm"(next)
      : "cc");
  return inside;
#else
  return ends != 0 ? next : inside;
#endif
}

/// A lane's state while it is in registers.
struct LaneState {
  std::uint64_t bit, position, window;
  const LaneEntry* table;
};

/// The index of the block that the next symbol belongs to.
HWY_INLINE std::uint64_t block_of(std::uint64_t position) {
  return (position + 1) / kBlockPositions;
}

/// Decodes one symbol and reads the window again. Used for symbols that entries cannot describe,
/// and for a coefficient in a block's last place, after which there is no end-of-block symbol.
/// @param reports_damage whether to report damage; invalid data after a lane's end is not damage.
/// @param out    receives the coefficient; may be null.
HWY_NOINLINE HWY_ATTR LaneState decode_symbol(LaneScan& scan, LaneState lane, bool reports_damage,
                                              LaneBlock* out) {
  const LaneSymbol symbol = scan.tables->symbol(lane.table, bits_at(scan.bytes, lane.bit));
  const std::uint64_t block = block_of(lane.position);
  const std::uint64_t position = lane.position + symbol.advance;
  const std::uint64_t coefficients = position - block * kBlockPositions;
  const bool exceeds = coefficients > kPastBlock;
  if (reports_damage && (!symbol.exists || exceeds)) scan.damaged = true;
  if (out != nullptr && !symbol.ends_block && !exceeds)
    out[block].coefficients[coefficients - 1] = symbol.value;
  const bool ends = symbol.ends_block || coefficients >= kPastBlock;
  lane.position = ends ? position | kLastPosition : position;
  lane.table = ends ? scan.next_dc[block] : scan.ac[block];
  lane.bit += symbol.bits;
  lane.window = bits_at(scan.bytes, lane.bit);
  return lane;
}

template <int kBits>
HWY_INLINE void apply_entry(LaneScan& scan, const LaneEntry* const* ac,
                            const LaneEntry* const* next_dc, std::int16_t* HWY_RESTRICT out,
                            std::uint64_t lane_end, LaneState& lane) {
  const LaneEntry* const entry = lane.table + (lane.window >> (64 - kBits));
  const std::uint64_t block = block_of(lane.position);
  const std::uint64_t first = lane.position + entry->advance;
  const std::uint64_t second = first + entry->second_advance;
  if (HWY_UNLIKELY((second & kPastBlock) != 0)) {
    const LaneState before = lane;
    lane = decode_symbol(scan, before, before.position < lane_end, scan.blocks);
    return;
  }
  const std::uint64_t other_bits = (lane.window & ~std::uint64_t{0} >> kBits) >> entry->shift;
  // Write the second value first: if there is none, both have the same place. Places count from 1.
  out[second - 1] = entry->second_value;  // NOLINT(bugprone-signed-char-misuse): a small number
  out[first - 1] =
      static_cast<std::int16_t>(static_cast<std::uint64_t>(entry->first_value) + other_bits);
  lane.position = second | entry->end;
  lane.table = choose_table(entry->end, ac[block], next_dc[block]);
  const unsigned bits = entry->bits;
  lane.bit += bits;
  lane.window <<= bits;
}

/// Decodes the last entries of a lane again, up to the lane's end, without writing coefficients.
/// @return the bit at which the last block ends.
template <int kBits>
HWY_NOINLINE HWY_ATTR std::uint64_t find_end(LaneScan& scan, LaneState lane, std::uint64_t end) {
  while (lane.position < end) {
    lane.window = bits_at(scan.bytes, lane.bit);
    const LaneEntry entry = lane.table[lane.window >> (64 - kBits)];
    const std::uint64_t block = block_of(lane.position);
    const std::uint64_t second = lane.position + entry.advance + entry.second_advance;
    if ((second & kPastBlock) != 0) {
      lane = decode_symbol(scan, lane, false, nullptr);
    } else {
      lane.position = second | entry.end;
      lane.table = entry.end != 0 ? scan.next_dc[block] : scan.ac[block];
      lane.bit += entry.bits;
    }
  }
  return lane.bit;
}

/// @tparam kLane the indices of the lanes. Because they are constants, the lanes' states stay in
/// registers.
template <int kBits, std::size_t... kLane>
HWY_INLINE void run(LaneScan& scan, Lane* lanes, std::index_sequence<kLane...> /*unused*/) {
  const std::uint8_t* const bytes = scan.bytes;
  const LaneEntry* const* const ac = scan.ac;
  const LaneEntry* const* const next_dc = scan.next_dc;
  std::int16_t* const out = scan.blocks->coefficients;
  LaneState running[] = {{lanes[kLane].bit, lanes[kLane].position, 0, lanes[kLane].table}...};
  const std::uint64_t end[] = {lanes[kLane].end...};
  std::uint64_t bit_before[sizeof...(kLane)] = {}, position_before[sizeof...(kLane)] = {};
  bool any_ended = false;
  do {
    ((bit_before[kLane] = running[kLane].bit), ...);
    ((position_before[kLane] = running[kLane].position), ...);
    static_assert(3 * LaneEntry::kMaxBits <= 57);
    ((running[kLane].window = bits_at(bytes, running[kLane].bit)), ...);
    (apply_entry<kBits>(scan, ac, next_dc, out, end[kLane], running[kLane]), ...);
    (apply_entry<kBits>(scan, ac, next_dc, out, end[kLane], running[kLane]), ...);
    (apply_entry<kBits>(scan, ac, next_dc, out, end[kLane], running[kLane]), ...);
    any_ended = ((running[kLane].position >= end[kLane]) | ...);
  } while (HWY_LIKELY(!any_ended));
  const auto leave = [&](std::size_t k, Lane& lane) HWY_ATTR {
    lane.bit = running[k].bit;
    lane.position = running[k].position;
    lane.table = running[k].table;
    if (lane.position < lane.end) return;
    const std::uint64_t block = block_of(position_before[k]);
    const bool begins = (position_before[k] & kLastPosition) == kLastPosition;
    lane.end_bit = find_end<kBits>(
        scan, {bit_before[k], position_before[k], 0, begins ? next_dc[block - 1] : ac[block]},
        lane.end);
  };
  (leave(kLane, lanes[kLane]), ...);
}

template <int kBits>
void run_some(LaneScan& scan, std::span<Lane> lanes) {
  static_assert(LaneShape::kMaxLanes == 4);
  switch (lanes.size()) {
    case 1:
      return run<kBits>(scan, lanes.data(), std::make_index_sequence<1>());
    case 2:
      return run<kBits>(scan, lanes.data(), std::make_index_sequence<2>());
    case 3:
      return run<kBits>(scan, lanes.data(), std::make_index_sequence<3>());
    default:
      return run<kBits>(scan, lanes.data(), std::make_index_sequence<4>());
  }
}

void run_lanes_simd(LaneScan& scan, std::span<Lane> lanes) {
  switch (scan.tables->bits()) {
    case 10:
      return run_some<10>(scan, lanes);
    case 11:
      return run_some<11>(scan, lanes);
    default:
      return run_some<12>(scan, lanes);
  }
}

bool are_fast() {
  return HWY_TARGET == HWY_AVX2;
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(run_lanes_simd);
HWY_EXPORT(are_fast);

void run_lanes(LaneScan& scan, std::span<Lane> lanes) {
  HWY_DYNAMIC_DISPATCH(run_lanes_simd)(scan, lanes);
}

bool lanes_are_fast() {
  return HWY_DYNAMIC_DISPATCH(are_fast)();
}

}  // namespace precast::data
#endif  // HWY_ONCE
