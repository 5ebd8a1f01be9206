#include "data/decode/scan_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/decode/scan_kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "data/decode/dct-inl.h"
#include "data/decode/scan_bits-inl.h"

HWY_BEFORE_NAMESPACE();
namespace precast::data::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Positions of the coefficients in a BlockPair, by zigzag index. Invalid indices map to a position
/// after the pair, so that the symbol that ends a block is stored without a check.
struct PairOffsets {
  std::uint8_t at[64 + HuffmanTable::kEndOfBlock] = {};
  constexpr PairOffsets() {
    for (std::size_t k = 0; k < sizeof at; ++k) {
      const std::size_t natural = k < 64 ? kZigzag[k] : 0;
      at[k] = static_cast<std::uint8_t>(k < 64 ? natural / 8 * 16 + natural % 8 : 128);
    }
  }
};
constexpr PairOffsets kPairOffsets;

/// @param out receives the block's coefficients; must be all zero before the call.
HWY_INLINE bool read_block(BitReader& reader, const ScanBlock& block, int& dc, std::int16_t* out) {
  if (!read_dc(reader, *block.dc, dc)) return false;
  out[0] = static_cast<std::int16_t>(dc);
  const HuffmanTable& table = *block.ac;
  Entry entry = 0;
  unsigned k = 0;
  const auto read_coefficient = [&]() HWY_ATTR {
    if (!look_up(table, reader, entry)) return false;
    k += HuffmanTable::advance(entry);
    out[kPairOffsets.at[k]] = static_cast<std::int16_t>(coefficient(entry, reader.bits));
    drop(reader, entry);
    return true;
  };
  do {
    // A code and its coefficient have at most 26 bits: two of them fit into the bits that refill()
    // provides.
    refill(reader);
    if (!read_coefficient()) return false;
    if (k >= kLast) break;
    if (!read_coefficient()) return false;
  } while (k < kLast);
  return k == kLast || k >= kFirstOfEnd;
}

/// Multiplies by the quantisation table, in 16 bits as libjpeg-turbo does, and clears the
/// coefficients.
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
  BitReader reader = copy_of(state.reader);
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

}  // namespace
}  // namespace precast::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precast::data {

HWY_EXPORT(decode_ifast);
HWY_EXPORT(decode_islow);

ScanProgress decode_mcus(ScanState& state, std::size_t mcus, JpegDct dct,
                         std::array<BlockTarget, kMaxMcuBlocks>& targets) {
  if (dct == JpegDct::ifast) return HWY_DYNAMIC_DISPATCH(decode_ifast)(state, mcus, targets);
  return HWY_DYNAMIC_DISPATCH(decode_islow)(state, mcus, targets);
}

void scale_quantizers(const std::array<std::uint8_t, 64>& quantizers, JpegDct dct,
                      std::array<std::int16_t, 64>& out) {
  // For the fast DCT, the quantisation table includes one factor per row and column, with 2
  // fractional bits (libjpeg's jddctmgr.c). libjpeg first rounds the factors to 14 fractional bits.
  static const auto factors = [] {
    constexpr double kFactors[8] = {1.0, 1.387039845, 1.306562965, 1.175875602,
                                    1.0, 0.785694958, 0.541196100, 0.275899379};
    std::array<long, 64> all;
    for (std::size_t i = 0; i < 64; ++i)
      all[i] = std::lround(kFactors[i / 8] * kFactors[i % 8] * 16384);
    return all;
  }();
  for (std::size_t i = 0; i < 64; ++i) {
    const long value =
        dct == JpegDct::islow ? quantizers[i] : (quantizers[i] * factors[i] + 2048) >> 12;
    out[i] = static_cast<std::int16_t>(value);
  }
}

}  // namespace precast::data
#endif  // HWY_ONCE
