#include "data/decode/scan_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/decode/scan_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Entry = HuffmanTable::Entry;

// ---- Bits to coefficients ----

/// Makes at least 56 bits count, without a branch (Giesen, "Reading bits in far too many ways").
HWY_INLINE void refill(BitReader& reader) {
  std::uint64_t next = 0;
  std::memcpy(&next, reader.next, sizeof next);
  if constexpr (std::endian::native == std::endian::little) next = __builtin_bswap64(next);
  reader.bits |= next >> reader.count;
  reader.next += (63 - reader.count) >> 3;
  reader.count |= 56;
}

/// The coefficient behind a code: its bits, where those that begin with 0 stand for negative
/// numbers (T.81, F.2.2.1). Without a branch, as none could be foretold; shifts look at six bits of
/// their counts alone, so the fields of `entry` need no masks.
HWY_INLINE int coefficient(Entry entry, std::uint64_t bits) {
  const std::uint64_t behind = bits << (entry >> 16 & 63U);
  const unsigned size = HuffmanTable::size(entry);
  const auto value = static_cast<std::int64_t>(behind >> 1 >> (~size & 63U));
  const std::int64_t is_positive = static_cast<std::int64_t>(behind) >> 63;
  const std::int64_t to_negative = 1 - (std::int64_t{1} << size);
  return static_cast<int>(value + (~is_positive & to_negative));
}

/// Made-up files can add up differences without an end.
HWY_INLINE int wrapped_sum(int a, int b) {
  return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
}

/// Places of the coefficients in a BlockPair, by zigzag index. Indices that no block has lead
/// behind the pair: what ends a block is stored without asking.
struct PairPlaces {
  std::uint8_t at[64 + HuffmanTable::kEndOfBlock] = {};
  constexpr PairPlaces() {
    for (std::size_t k = 0; k < sizeof at; ++k) {
      const std::size_t natural = k < 64 ? kZigzag[k] : 0;
      at[k] = static_cast<std::uint8_t>(k < 64 ? natural / 8 * 16 + natural % 8 : 128);
    }
  }
};
constexpr PairPlaces kPlaces;

constexpr unsigned kLast = 63;
/// Zigzag indices between the last one and this come from runs beyond the block.
constexpr unsigned kFirstOfEnd = HuffmanTable::kEndOfBlock;

/// Takes the entry of the next code. False if there is none.
HWY_INLINE bool look_up(const HuffmanTable& table, const BitReader& reader, Entry& entry) {
  entry = table.lookup()[reader.bits >> (64 - HuffmanTable::kLookupBits)];
  if (HWY_LIKELY(entry != 0)) return true;
  entry = table.find_long(static_cast<std::uint32_t>(reader.bits >> 48));
  return entry != 0;
}

/// @param entry its low six bits are a number of bits: a shift looks at no others.
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

/// @param out where the block's coefficients go, all zero before.
HWY_INLINE bool read_block(BitReader& reader, const ScanBlock& block, int& dc, std::int16_t* out) {
  Entry entry = 0;
  refill(reader);
  if (!look_up(*block.dc, reader, entry)) return false;
  dc = wrapped_sum(dc, coefficient(entry, reader.bits));
  out[0] = static_cast<std::int16_t>(dc);
  drop(reader, entry);
  const HuffmanTable& table = *block.ac;
  unsigned k = 0;
  const auto take_one = [&]() HWY_ATTR {
    if (!look_up(table, reader, entry)) return false;
    k += HuffmanTable::advance(entry);
    out[kPlaces.at[k]] = static_cast<std::int16_t>(coefficient(entry, reader.bits));
    drop(reader, entry);
    return true;
  };
  do {
    // A code and its coefficient have at most 26 bits: two fit into what refill() gives.
    refill(reader);
    if (!take_one()) return false;
    if (k >= kLast) break;
    if (!take_one()) return false;
  } while (k < kLast);
  return k == kLast || k >= kFirstOfEnd;
}

/// Reads over a block, mostly several symbols at a time.
HWY_INLINE bool skip_block(BitReader& reader, const ScanBlock& block, int& dc) {
  if (!read_dc(reader, *block.dc, dc)) return false;
  const HuffmanTable& table = *block.ac;
  const auto* const several = table.skip_lookup();
  unsigned k = 0;
  const auto take_one = [&]() HWY_ATTR {
    Entry entry = 0;
    if (!look_up(table, reader, entry)) return false;
    k += HuffmanTable::advance(entry);
    drop(reader, entry);
    return true;
  };
  while (k < kLast - HuffmanTable::kMostSkipped) {
    refill(reader);
    const std::uint32_t entry = several[reader.bits >> (64 - HuffmanTable::kSkipBits)];
    k += entry >> 8;
    drop(reader, entry);
    if (HWY_UNLIKELY(entry == 0) && !take_one()) return false;
  }
  while (k < kLast) {
    refill(reader);
    if (!take_one()) return false;
  }
  return k == kLast || k >= kFirstOfEnd;
}

// ---- Coefficients to samples ----

/// Eight vectors: the rows of blocks that lie side by side.
template <class D>
struct Rows {
  hn::Vec<D> v[8];
};

/// value * factor / 2^8 in the way of libjpeg-turbo's SIMD code: shifted up first, upper half
/// after.
template <class D>
HWY_INLINE hn::Vec<D> scaled(D d, hn::Vec<D> value, int factor) {
  return hn::MulHigh(hn::ShiftLeft<2>(value), hn::Set(d, static_cast<std::int16_t>(factor * 64)));
}

/// One pass of the fast DCT down the columns (Arai, Agui, Nakajima 1988; libjpeg's jidctfst.c), its
/// factors with 8 bits behind the point.
template <class D>
HWY_INLINE void ifast_columns(D d, Rows<D>& rows) {
  constexpr int k1_082 = 277, k1_414 = 362, k1_847 = 473, kMinus1_613 = -(669 - 256);
  auto& v = rows.v;
  const auto even_sum = hn::Add(v[0], v[4]), even_difference = hn::Sub(v[0], v[4]);
  const auto pair_sum = hn::Add(v[2], v[6]);
  const auto rotated = hn::Sub(scaled(d, hn::Sub(v[2], v[6]), k1_414), pair_sum);
  const auto e0 = hn::Add(even_sum, pair_sum), e3 = hn::Sub(even_sum, pair_sum);
  const auto e1 = hn::Add(even_difference, rotated), e2 = hn::Sub(even_difference, rotated);

  const auto z13 = hn::Add(v[5], v[3]), z10 = hn::Sub(v[5], v[3]);
  const auto z11 = hn::Add(v[1], v[7]), z12 = hn::Sub(v[1], v[7]);
  const auto o7 = hn::Add(z11, z13);
  const auto t11 = scaled(d, hn::Sub(z11, z13), k1_414);
  const auto z5 = scaled(d, hn::Add(z10, z12), k1_847);
  const auto t10 = hn::Sub(scaled(d, z12, k1_082), z5);
  const auto t12 = hn::Add(hn::Sub(scaled(d, z10, kMinus1_613), z10), z5);
  const auto o6 = hn::Sub(t12, o7);
  const auto o5 = hn::Sub(t11, o6);
  const auto o4 = hn::Add(t10, o5);

  v[0] = hn::Add(e0, o7);
  v[7] = hn::Sub(e0, o7);
  v[1] = hn::Add(e1, o6);
  v[6] = hn::Sub(e1, o6);
  v[2] = hn::Add(e2, o5);
  v[5] = hn::Sub(e2, o5);
  v[4] = hn::Add(e3, o4);
  v[3] = hn::Sub(e3, o4);
}

/// One pass of the accurate DCT down the columns (Loeffler, Ligtenberg, Moschytz 1989; libjpeg's
/// jidctint.c), 13 bits behind the point, results shifted right by kShift with rounding.
template <int kShift, class D>
HWY_INLINE void islow_columns(D d, Rows<D>& rows) {
  const auto times = [d](hn::Vec<D> value, int factor)
                         HWY_ATTR { return hn::Mul(value, hn::Set(d, factor)); };
  auto& v = rows.v;
  const auto even = times(hn::Add(v[2], v[6]), 4433);
  const auto t2 = hn::Sub(even, times(v[6], 15137)), t3 = hn::Add(even, times(v[2], 6270));
  const auto t0 = hn::ShiftLeft<13>(hn::Add(v[0], v[4]));
  const auto t1 = hn::ShiftLeft<13>(hn::Sub(v[0], v[4]));
  const auto e0 = hn::Add(t0, t3), e3 = hn::Sub(t0, t3);
  const auto e1 = hn::Add(t1, t2), e2 = hn::Sub(t1, t2);

  const auto z1 = times(hn::Add(v[7], v[1]), -7373), z2 = times(hn::Add(v[5], v[3]), -20995);
  const auto sum3 = hn::Add(v[7], v[3]), sum4 = hn::Add(v[5], v[1]);
  const auto z5 = times(hn::Add(sum3, sum4), 9633);
  const auto z3 = hn::Add(times(sum3, -16069), z5), z4 = hn::Add(times(sum4, -3196), z5);
  const auto o0 = hn::Add(times(v[7], 2446), hn::Add(z1, z3));
  const auto o1 = hn::Add(times(v[5], 16819), hn::Add(z2, z4));
  const auto o2 = hn::Add(times(v[3], 25172), hn::Add(z2, z3));
  const auto o3 = hn::Add(times(v[1], 12299), hn::Add(z1, z4));

  const auto rounding = hn::Set(d, 1 << (kShift - 1));
  const auto put = [&](int low, int high, hn::Vec<D> e, hn::Vec<D> o) HWY_ATTR {
    const auto rounded = hn::Add(e, rounding);
    v[low] = hn::ShiftRight<kShift>(hn::Add(rounded, o));
    v[high] = hn::ShiftRight<kShift>(hn::Sub(rounded, o));
  };
  put(0, 7, e0, o3);
  put(1, 6, e1, o2);
  put(2, 5, e2, o1);
  put(3, 4, e3, o0);
}

/// The samples of two blocks as signed bytes: [8 rows][2 blocks][8 columns].
struct PairSamples {
  std::uint8_t at[8][16];
};

/// Without shuffles: transposes through memory. Exact whatever the number of lanes.
template <class D, typename T, typename Pass1, typename Pass2>
HWY_INLINE void transform_pair(D d, const T* in, const Pass1& pass1, const Pass2& pass2,
                               PairSamples& out) {
  T turned[8][16];
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t x = 0; x < 16; x += lanes) {
    Rows<D> rows;
    for (int y = 0; y < 8; ++y) rows.v[y] = hn::LoadU(d, in + y * 16 + x);
    pass1(rows);
    alignas(64) T column[8][16];
    for (int y = 0; y < 8; ++y) hn::StoreU(rows.v[y], d, column[y]);
    for (std::size_t i = 0; i < lanes; ++i) {
      for (std::size_t y = 0; y < 8; ++y) turned[(x + i) % 8][(x + i) / 8 * 8 + y] = column[y][i];
    }
  }
  for (std::size_t x = 0; x < 16; x += lanes) {
    Rows<D> rows;
    for (int y = 0; y < 8; ++y) rows.v[y] = hn::LoadU(d, turned[y] + x);
    pass2(rows);
    alignas(64) T row[8][16];
    for (int y = 0; y < 8; ++y) hn::StoreU(rows.v[y], d, row[y]);
    for (std::size_t i = 0; i < lanes; ++i) {
      for (std::size_t y = 0; y < 8; ++y) {
        const T value = row[y][i] < -128 ? T{-128} : row[y][i] > 127 ? T{127} : row[y][i];
        out.at[(x + i) % 8][(x + i) / 8 * 8 + y] = static_cast<std::uint8_t>(value + 128);
      }
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void ifast_pair(const std::int16_t* in, PairSamples& out) {
  const hn::CappedTag<std::int16_t, 16> d;
  const auto pass1 = [&](auto& rows) HWY_ATTR { ifast_columns(d, rows); };
  const auto pass2 = [&](auto& rows) HWY_ATTR {
    ifast_columns(d, rows);
    for (auto& row : rows.v) row = hn::ShiftRight<5>(row);
  };
  transform_pair(d, in, pass1, pass2, out);
}
#else
/// Transposes each 8 x 8 block of 16-bit numbers; blocks lie side by side in 128 bits each.
template <class D>
HWY_INLINE void transpose_blocks(D d, Rows<D>& rows) {
  const hn::Repartition<std::int32_t, D> d32;
  const hn::Repartition<std::int64_t, D> d64;
  auto& v = rows.v;
  const auto as32 = [&](hn::Vec<D> x) HWY_ATTR { return hn::BitCast(d32, x); };
  const auto as64 = [&](auto x) HWY_ATTR { return hn::BitCast(d64, x); };
  const auto a0 = as32(hn::InterleaveLower(d, v[0], v[1]));
  const auto a1 = as32(hn::InterleaveUpper(d, v[0], v[1]));
  const auto a2 = as32(hn::InterleaveLower(d, v[2], v[3]));
  const auto a3 = as32(hn::InterleaveUpper(d, v[2], v[3]));
  const auto a4 = as32(hn::InterleaveLower(d, v[4], v[5]));
  const auto a5 = as32(hn::InterleaveUpper(d, v[4], v[5]));
  const auto a6 = as32(hn::InterleaveLower(d, v[6], v[7]));
  const auto a7 = as32(hn::InterleaveUpper(d, v[6], v[7]));
  const auto finish = [&](int at, auto upper_half, auto lower_half) HWY_ATTR {
    v[at] = hn::BitCast(d, hn::InterleaveLower(d64, upper_half, lower_half));
    v[at + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, upper_half, lower_half));
  };
  finish(0, as64(hn::InterleaveLower(d32, a0, a2)), as64(hn::InterleaveLower(d32, a4, a6)));
  finish(2, as64(hn::InterleaveUpper(d32, a0, a2)), as64(hn::InterleaveUpper(d32, a4, a6)));
  finish(4, as64(hn::InterleaveLower(d32, a1, a3)), as64(hn::InterleaveLower(d32, a5, a7)));
  finish(6, as64(hn::InterleaveUpper(d32, a1, a3)), as64(hn::InterleaveUpper(d32, a5, a7)));
}

HWY_INLINE void ifast_pair(const std::int16_t* in, PairSamples& out) {
  const hn::CappedTag<std::int16_t, 16> d;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const hn::Rebind<std::uint8_t, decltype(d)> d_u8;
  const auto flip_sign = hn::Set(d_u8, 0x80);
  for (std::size_t x = 0; x < 16; x += hn::Lanes(d)) {
    Rows<hn::CappedTag<std::int16_t, 16>> rows;
    for (int y = 0; y < 8; ++y) rows.v[y] = hn::LoadU(d, in + y * 16 + x);
    ifast_columns(d, rows);
    transpose_blocks(d, rows);
    ifast_columns(d, rows);
    for (auto& row : rows.v) row = hn::ShiftRight<5>(row);
    transpose_blocks(d, rows);
    for (int y = 0; y < 8; ++y) {
      const auto centred = hn::BitCast(d_u8, hn::DemoteTo(d8, rows.v[y]));
      hn::StoreU(hn::Xor(centred, flip_sign), d_u8, out.at[y] + x);
    }
  }
}
#endif

HWY_INLINE void islow_pair(const std::int16_t* in, PairSamples& out) {
  const hn::CappedTag<std::int32_t, 16> d;
  std::int32_t wide[128];
  for (int i = 0; i < 128; ++i) wide[i] = in[i];
  const auto pass1 = [&](auto& rows) HWY_ATTR { islow_columns<11>(d, rows); };
  const auto pass2 = [&](auto& rows) HWY_ATTR { islow_columns<18>(d, rows); };
  transform_pair(d, wide, pass1, pass2, out);
}

/// Multiplies by the quantisation, in 16 bits as libjpeg-turbo does, and clears the coefficients.
HWY_INLINE void dequantize(BlockPair& coefficients, const BlockPair& quantizers,
                           std::int16_t* HWY_RESTRICT out) {
  const hn::CappedTag<std::int16_t, 32> d;
  for (std::size_t i = 0; i < 128; i += hn::Lanes(d)) {
    hn::StoreU(hn::Mul(hn::Load(d, coefficients.values + i), hn::Load(d, quantizers.values + i)), d,
               out + i);
    hn::Store(hn::Zero(d), d, coefficients.values + i);
  }
}

HWY_INLINE void store_block(const PairSamples& samples, std::size_t block, BlockTarget& target) {
  std::uint8_t* out = target.samples;
  for (int y = 0; y < 8; ++y, out += target.stride) std::memcpy(out, samples.at[y] + 8 * block, 8);
  target.samples += target.step;
}

template <JpegDct kDct>
ScanProgress decode_run(ScanState& state, std::size_t mcus,
                        std::array<BlockTarget, kMaxMcuBlocks>& targets) {
  // Member by member: a copy in one vector of what was just stored in pieces would stall.
  BitReader reader{state.reader.next, state.reader.bits, state.reader.count};
  ScanProgress progress;
  for (; progress.mcus < mcus && reader.next < state.limit; ++progress.mcus) {
    for (std::size_t b = 0; b < state.blocks; ++b) {
      const ScanBlock& block = state.block[b];
      std::int16_t* const out = state.coefficients[b / 2].values + b % 2 * 8;
      if (!read_block(reader, block, state.dc[block.component], out)) {
        for (BlockPair& pair : state.coefficients) pair = {};
        progress.damaged = true;
        return progress;
      }
    }
    for (std::size_t b = 0; b < state.blocks; b += 2) {
      alignas(64) std::int16_t values[128];
      PairSamples samples;
      dequantize(state.coefficients[b / 2], state.quantizers[b / 2], values);
      if constexpr (kDct == JpegDct::ifast) {
        ifast_pair(values, samples);
      } else {
        islow_pair(values, samples);
      }
      store_block(samples, 0, targets[b]);
      if (b + 1 < state.blocks) store_block(samples, 1, targets[b + 1]);
    }
  }
  state.reader = reader;
  return progress;
}

ScanProgress decode_ifast(ScanState& state, std::size_t mcus,
                          std::array<BlockTarget, kMaxMcuBlocks>& targets) {
  return decode_run<JpegDct::ifast>(state, mcus, targets);
}

ScanProgress decode_islow(ScanState& state, std::size_t mcus,
                          std::array<BlockTarget, kMaxMcuBlocks>& targets) {
  return decode_run<JpegDct::islow>(state, mcus, targets);
}

ScanProgress skip_run(ScanState& state, std::size_t mcus) {
  // Member by member: a copy in one vector of what was just stored in pieces would stall.
  BitReader reader{state.reader.next, state.reader.bits, state.reader.count};
  ScanProgress progress;
  for (; progress.mcus < mcus && reader.next < state.limit; ++progress.mcus) {
    for (std::size_t b = 0; b < state.blocks; ++b) {
      const ScanBlock& block = state.block[b];
      if (!skip_block(reader, block, state.dc[block.component])) {
        progress.damaged = true;
        return progress;
      }
    }
  }
  state.reader = reader;
  return progress;
}

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(decode_ifast);
HWY_EXPORT(decode_islow);
HWY_EXPORT(skip_run);

void BitReader::start(const std::uint8_t* at, unsigned skipped_bits) {
  // The byte that is begun counts as read, its remaining bits as there.
  next = at + (skipped_bits > 0 ? 1 : 0);
  count = skipped_bits > 0 ? 8 - skipped_bits : 0;
  bits = count > 0 ? std::uint64_t{*at} << (56 + skipped_bits) : 0;
}

ScanProgress decode_mcus(ScanState& state, std::size_t mcus, JpegDct dct,
                         std::array<BlockTarget, kMaxMcuBlocks>& targets) {
  if (dct == JpegDct::ifast) return HWY_DYNAMIC_DISPATCH(decode_ifast)(state, mcus, targets);
  return HWY_DYNAMIC_DISPATCH(decode_islow)(state, mcus, targets);
}

ScanProgress skip_mcus(ScanState& state, std::size_t mcus) {
  return HWY_DYNAMIC_DISPATCH(skip_run)(state, mcus);
}

void scale_quantizers(const std::array<std::uint8_t, 64>& quantizers, JpegDct dct,
                      std::array<std::int16_t, 64>& out) {
  // The fast DCT leaves a factor of each row and column to the quantisation, with 2 bits behind the
  // point (libjpeg's jddctmgr.c); libjpeg rounds the factors to 14 bits first.
  constexpr double kFactors[8] = {1.0, 1.387039845, 1.306562965, 1.175875602,
                                  1.0, 0.785694958, 0.541196100, 0.275899379};
  for (std::size_t i = 0; i < 64; ++i) {
    if (dct == JpegDct::islow) {
      out[i] = quantizers[i];
      continue;
    }
    const auto factor = std::lround(kFactors[i / 8] * kFactors[i % 8] * 16384);
    out[i] = static_cast<std::int16_t>((quantizers[i] * factor + 2048) >> 12);
  }
}

}  // namespace precast::data
#endif  // HWY_ONCE
