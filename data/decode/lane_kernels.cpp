#include "data/decode/lane_kernels.h"

// Scalar code: AVX2 brings the shifts that it needs (BMI2), and wider vectors nothing.
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

/// Set in a place that is not one of the block's coefficients.
constexpr std::uint64_t kPastBlock = 64;
static_assert(2 * kPastBlock == kBlockPlaces);

HWY_INLINE std::uint64_t bits_at(const std::uint8_t* bytes, std::uint64_t bit) {
  std::uint64_t next = 0;
  std::memcpy(&next, bytes + (bit >> 3), sizeof next);
  if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
  return next << (bit & 7U);
}

// Which one is taken cannot be predicted, and compilers make branches of such choices.

/// The number that `size` bits stand for; `positive` if their first one, the sign of `bits`, is 1.
HWY_INLINE std::int64_t choose_by_sign(std::int64_t bits, std::int64_t positive,
                                       std::int64_t negative) {
#if HWY_ARCH_X86_64
  asm("test %[bits], %[bits]\n\tcmovns %[negative], %[positive]"
      : [positive] "+r"(positive)
      : [bits] "r"(bits), [negative] "r"(negative)
      : "cc");
  return positive;
#else
  return bits < 0 ? positive : negative;
#endif
}

HWY_INLINE const LaneEntry* choose_table(std::uint64_t place, const LaneEntry* inside,
                                         const LaneEntry* next) {
#if HWY_ARCH_X86_64
  asm("testb $64, %b[place]\n\tcmovnz %[next], %[inside]"
      : [inside] "+r"(inside)
      : [place] "q"(place), [next] "rm"(next)
      : "cc");
  return inside;
#else
  return (place & kPastBlock) != 0 ? next : inside;
#endif
}

/// A lane's state while it is in registers.
struct Running {
  std::uint64_t bit, place, window;
  const LaneEntry* table;
};

/// The rare paths. @param counts whether a code that does not exist is damage: after a lane's end
/// it is none.
HWY_NOINLINE HWY_ATTR void find_symbol(LaneScan& scan, const LaneEntry* table, std::uint64_t window,
                                       bool counts, LaneEntry& out) {
  bool exists = false;
  out = scan.tables->symbol(table, window, exists);
  if (!exists && counts) scan.damaged = true;
}

template <int kBits>
HWY_INLINE void take_entry(LaneScan& scan, std::int16_t* HWY_RESTRICT coefficients,
                           const LaneEntry* const* ac, const LaneEntry* const* next_dc,
                           std::uint64_t lane_end, Running& lane, LaneEntry& found) {
  const LaneEntry* entry = lane.table + (lane.window >> (64 - kBits));
  if (HWY_UNLIKELY(entry->bits >= LaneEntry::kLong)) {
    find_symbol(scan, lane.table, lane.window, lane.place < lane_end, found);
    entry = &found;
  }
  const std::uint64_t block = (lane.place + 1) / kBlockPlaces;
  const auto coefficient_bits = static_cast<std::int64_t>(lane.window << entry->code_bits);
  const unsigned shift = entry->shift;
  const auto value =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(coefficient_bits) >> 1 >> shift);
  const std::int64_t first_value =
      choose_by_sign(coefficient_bits, value, value + (INT64_MIN >> shift) + 1);

  const std::uint64_t first = lane.place + entry->advance;
  if (HWY_UNLIKELY((first & kPastBlock) != 0)) {
    // The block's last coefficient: a second symbol would be of another table. Or past it.
    find_symbol(scan, lane.table, lane.window, lane.place < lane_end, found);
    found.end = kLastPlace;
    entry = &found;
  }
  const std::uint64_t second = first + entry->second_advance;
  std::uint64_t place = second | entry->end;
  if (HWY_UNLIKELY((second & kPastBlock) != 0)) {
    if (second % kBlockPlaces > kPastBlock) scan.damaged = true;
    place |= kLastPlace;
  }
  // In this order: without a second value both have the same place.
  std::int16_t* const before = coefficients - block * (kBlockPlaces - kPastBlock) - 1;
  before[second] = entry->second_value;
  before[first] = static_cast<std::int16_t>(first_value);
  lane.place = place;
  lane.table = choose_table(place, ac[block], next_dc[block]);
  const unsigned bits = entry->bits;
  lane.bit += bits;
  lane.window <<= bits;
}

/// @tparam kLane the indices of the lanes: as constants, so that their states stay in registers.
template <int kBits, std::size_t... kLane>
HWY_INLINE void run(LaneScan& scan, Lane* lanes, std::index_sequence<kLane...> /*unused*/) {
  std::int16_t* const coefficients = scan.coefficients;
  const std::uint8_t* const bytes = scan.bytes;
  const LaneEntry* const* const ac = scan.ac;
  const LaneEntry* const* const next_dc = scan.next_dc;
  Running running[] = {{lanes[kLane].bit, lanes[kLane].place, 0, lanes[kLane].table}...};
  const std::uint64_t end[] = {lanes[kLane].end...};
  std::uint64_t previous_bit[sizeof...(kLane)] = {};
  LaneEntry found;
  bool any_ended = false;
  do {
    // Two entries of at most 27 bits fit into the 57 that are there.
    ((running[kLane].window = bits_at(bytes, running[kLane].bit)), ...);
    (take_entry<kBits>(scan, coefficients, ac, next_dc, end[kLane], running[kLane], found), ...);
    ((previous_bit[kLane] = running[kLane].bit), ...);
    (take_entry<kBits>(scan, coefficients, ac, next_dc, end[kLane], running[kLane], found), ...);
    any_ended = ((running[kLane].place >= end[kLane]) | ...);
  } while (HWY_LIKELY(!any_ended));
  ((lanes[kLane].bit = running[kLane].bit), ...);
  ((lanes[kLane].place = running[kLane].place), ...);
  ((lanes[kLane].previous_bit = previous_bit[kLane]), ...);
  ((lanes[kLane].table = running[kLane].table), ...);
}

template <int kBits>
void run_some(LaneScan& scan, std::span<Lane> lanes) {
  static_assert(LaneShape::kMostLanes == 4);
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
