#include "data/decode/skip_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/decode/skip_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <array>

#include "data/decode/scan_bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

using Table = HuffmanTable;

/// Number of lookups per refill; each finds several symbols.
constexpr int kLookups = 3;
static_assert(kLookups * Table::kMaxSkippedBits <= kRefilledBits);
/// Skipper::k, the number of places advanced in the block, shows why the block ended. kLast: the
/// block's last place was reached. From kFirstOfEnd to kPastEnd - 1: its end-of-block symbol was
/// read. From kNotSkipped on: the last lookup could not determine a symbol. Other values: the last
/// lookup went past the end of the block, usually into symbols of the next block; end_block()
/// undoes it.
constexpr unsigned kPastEnd = kFirstOfEnd + kLast;
static_assert(kLast - 1 + Table::kMaxSkipped < kFirstOfEnd &&
              kLast - 1 + Table::kMaxSkipped + kFirstOfEnd < Table::kNotSkipped);

/// Skips over a stream of blocks, mostly several symbols at a time.
struct Skipper {
  BitReader reader;
  /// Number of skipped blocks, and the index of the next block in its MCU.
  std::size_t read = 0, block = 0;
  const HuffmanTable* table = nullptr;
  /// Places advanced in the block; from kLast on, shows why the block ended (kPastEnd).
  unsigned k = 0;
  Table::SkipEntry last_entry = 0;
};

HWY_INLINE bool begin_block(const ScanBlock& block, Skipper& skipper, int& dc) {
  skipper.table = block.ac;
  skipper.k = 0;
  return read_dc(skipper.reader, *block.dc, dc);
}

HWY_INLINE void skip_symbols(Skipper& skipper) {
  skipper.last_entry = skipper.table->skip_lookup()[skipper.reader.bits >> (64 - Table::kSkipBits)];
  skipper.k += skipper.last_entry >> 8;
  drop(skipper.reader, skipper.last_entry);
}

/// Puts the last `bits` bits back into the reader. They must have been dropped since the last
/// refill.
HWY_INLINE void unread_bits(BitReader& reader, unsigned bits) {
  const unsigned unread = reader.count + bits;
  reader.start(reader.next - (unread + 7) / 8, (8 - unread % 8) % 8);
}

enum class BlockEnd { none, here, damaged };

/// Determines whether the block has ended. Call when skip_symbols() has reached or passed the
/// block's last place.
HWY_INLINE BlockEnd end_block(Skipper& skipper) {
  const unsigned k = skipper.k;
  if (k == kLast || (k >= kFirstOfEnd && k < kPastEnd)) return BlockEnd::here;
  // Undo the last lookup, and read only its first symbol.
  unread_bits(skipper.reader, skipper.last_entry & 63U);
  skipper.k -= skipper.last_entry >> 8;
  refill(skipper.reader);
  Entry entry = 0;
  if (!look_up(*skipper.table, skipper.reader, entry)) return BlockEnd::damaged;
  skipper.k += Table::advance(entry);
  drop(skipper.reader, entry);
  if (skipper.k < kLast) return BlockEnd::none;
  return skipper.k == kLast || skipper.k >= kFirstOfEnd ? BlockEnd::here : BlockEnd::damaged;
}

HWY_INLINE bool begin_next(const ScanState& state, Skipper& skipper) {
  int dc = 0;
  return begin_block(state.block[skipper.block], skipper, dc);
}

HWY_INLINE void count_block(const ScanState& state, Skipper& skipper) {
  skipper.block = skipper.block + 1 == state.blocks ? 0 : skipper.block + 1;
  ++skipper.read;
}

/// Skips the rest of a block whose end has not been reached (k < kLast). @return false for a
/// damaged block.
HWY_INLINE bool finish_block(Skipper& skipper) {
  BlockEnd end = BlockEnd::none;
  while (end == BlockEnd::none) {
    refill(skipper.reader);
    for (int i = 0; i < kLookups && HWY_LIKELY(skipper.k < kLast); ++i) skip_symbols(skipper);
    if (skipper.k >= kLast) end = end_block(skipper);
  }
  return end == BlockEnd::here;
}

ScanProgress skip_run(ScanState& state, std::size_t mcus) {
  Skipper skipper{.reader = copy_of(state.reader)};
  ScanProgress progress;
  for (; progress.mcus < mcus && skipper.reader.next < state.limit; ++progress.mcus) {
    for (std::size_t b = 0; b < state.blocks; ++b) {
      const ScanBlock& block = state.block[b];
      if (!begin_block(block, skipper, state.dc[block.component]) || !finish_block(skipper)) {
        progress.damaged = true;
        return progress;
      }
    }
  }
  state.reader = skipper.reader;
  return progress;
}

// ---- Skipping from two positions of a scan alternately ----

/// In scans of fewer bytes, two streams are not faster than one.
constexpr std::ptrdiff_t kMinBytes = 1024;
/// Bytes for the longest block, 27 + 63 * 26 bits, and for the data that is read ahead.
constexpr std::ptrdiff_t kBlockBytes = 256;

/// The speculative stream: it starts inside the scan, as if an MCU began there.
struct Speculation {
  Skipper skipper;
  /// Where the stream starts; moved forward if no block can start there.
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* limit = nullptr;
  /// For each of the stream's first blocks, the number of bits from the scan's start to the block's
  /// end. Later blocks are not recorded, because streams that have not met by then are unlikely to
  /// meet.
  std::array<std::size_t, 1024> ends;
};

/// Starts the speculative stream at the next possible position. @return false if there is none.
HWY_INLINE bool begin_speculation(const ScanState& state, Speculation& speculation) {
  speculation.skipper = {};  // If no position is left, synchronize() must find no blocks.
  for (; speculation.begin < speculation.limit; ++speculation.begin) {
    speculation.skipper.reader.start(speculation.begin, 0);
    if (begin_next(state, speculation.skipper)) return true;
  }
  return false;
}

HWY_INLINE void count_speculated(const ScanState& state, const std::uint8_t* origin,
                                 Speculation& speculation) {
  Skipper& skipper = speculation.skipper;
  if (skipper.read < speculation.ends.size())
    speculation.ends[skipper.read] = skipper.reader.position(origin);
  count_block(state, skipper);
}

/// Continues the speculative stream. Call at the end of a block, or of bits that were mistaken for
/// a block.
/// @return false at the limit.
HWY_INLINE bool continue_speculation(const ScanState& state, const std::uint8_t* origin,
                                     Speculation& speculation) {
  const BlockEnd end = end_block(speculation.skipper);
  if (end == BlockEnd::none) return true;
  if (end == BlockEnd::here) {
    count_speculated(state, origin, speculation);
    if (speculation.skipper.reader.next >= speculation.limit) return false;
    if (begin_next(state, speculation.skipper)) return true;
  }
  speculation.begin = speculation.skipper.reader.next;
  return begin_speculation(state, speculation);
}

/// Reads from both streams until a block of one of them may have ended.
HWY_INLINE void skip_symbols_in_both(Skipper& a, Skipper& b) {
  while (true) {
    refill(a.reader);
    refill(b.reader);
    for (int i = 0; i < kLookups; ++i) {
      skip_symbols(a);
      skip_symbols(b);
      if (HWY_UNLIKELY(std::max(a.k, b.k) >= kLast)) return;
    }
  }
}

/// Skips blocks of both streams until the first stream has reached the start of the speculative
/// one, or the speculative one has reached its limit. @return false if the first stream is damaged.
bool skip_both(const ScanState& state, const std::uint8_t* origin, Skipper& first,
               Speculation& speculation) {
  if (!begin_next(state, first)) return false;
  bool first_continues = true, is_speculating = begin_speculation(state, speculation);
  while (first_continues && is_speculating) {
    skip_symbols_in_both(first, speculation.skipper);
    if (first.k >= kLast) {
      const BlockEnd end = end_block(first);
      if (end == BlockEnd::damaged) return false;
      if (end == BlockEnd::here) {
        count_block(state, first);
        first_continues = first.reader.next < speculation.begin;
        if (first_continues && !begin_next(state, first)) return false;
      }
    }
    if (speculation.skipper.k >= kLast)
      is_speculating = continue_speculation(state, origin, speculation);
  }
  if (is_speculating) {
    if (finish_block(speculation.skipper)) {
      count_speculated(state, origin, speculation);
    } else {
      speculation.skipper = {};
    }
  }
  if (!first_continues) return true;
  if (!finish_block(first)) return false;
  count_block(state, first);
  return true;
}

bool skip_one(const ScanState& state, Skipper& skipper) {
  if (skipper.reader.next >= state.limit || !begin_next(state, skipper) || !finish_block(skipper))
    return false;
  count_block(state, skipper);
  return true;
}

/// Whether all blocks of an MCU use the same tables, so that a block's index in its MCU does not
/// matter.
bool have_same_tables(const ScanState& state) {
  const ScanBlock& first = state.block[0];
  return std::all_of(state.block.begin(), state.block.begin() + state.blocks,
                     [&](const ScanBlock& block) HWY_ATTR {
                       return block.dc->has_same_codes(*first.dc) &&
                              block.ac->has_same_codes(*first.ac);
                     });
}

/// Continues the first stream until a block ends where a block of the speculative stream ended, at
/// the same index in an MCU. From there on, both streams are the same, so `first` continues where
/// the speculative stream ended.
bool synchronize(const ScanState& state, const std::uint8_t* origin, Skipper& first,
                 const Speculation& speculation) {
  const std::size_t period = have_same_tables(state) ? 1 : state.blocks;
  const std::size_t ends = std::min(speculation.skipper.read, speculation.ends.size());
  for (std::size_t i = 0; i < ends;) {
    const std::size_t at = first.reader.position(origin);
    if (speculation.ends[i] < at) {
      ++i;
    } else if (speculation.ends[i] == at && (i + 1) % period == first.block % period) {
      const std::size_t read = first.read + speculation.skipper.read - (i + 1);
      first = speculation.skipper;
      first.read = read;
      return true;
    } else if (!skip_one(state, first)) {
      return false;
    }
  }
  return true;
}

bool skip_scan_run(ScanState& state, std::size_t blocks) {
  const std::uint8_t* const origin = state.reader.next;
  Skipper skipper{.reader = copy_of(state.reader)};
  const std::ptrdiff_t bytes = state.limit - origin;
  if (bytes >= kMinBytes) {
    Speculation speculation;
    speculation.limit = state.limit - kBlockBytes;
    speculation.begin = origin + bytes / 2;
    if (!skip_both(state, origin, skipper, speculation) ||
        !synchronize(state, origin, skipper, speculation))
      return false;
  }
  while (skipper.read < blocks) {
    if (!skip_one(state, skipper)) return false;
  }
  state.reader = skipper.reader;
  return skipper.read == blocks;
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(skip_run);
HWY_EXPORT(skip_scan_run);

ScanProgress skip_mcus(ScanState& state, std::size_t mcus) {
  return HWY_DYNAMIC_DISPATCH(skip_run)(state, mcus);
}

bool skip_scan(ScanState& state, std::size_t blocks) {
  return HWY_DYNAMIC_DISPATCH(skip_scan_run)(state, blocks);
}

}  // namespace precast::data
#endif  // HWY_ONCE
