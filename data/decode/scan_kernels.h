#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "data/decode/bit_reader.h"
#include "data/decode/huffman_table.h"
#include "framework/core/export.h"

namespace precast::data {

/// The inverse DCT: libjpeg's fast integer version (as in FFCV), or its accurate version.
enum class JpegDct { ifast, islow };

inline constexpr std::size_t kMaxMcuBlocks = 6;

/// Coefficients of two blocks side by side: [8 rows][2 blocks][8 columns], followed by scratch
/// memory: the symbol that ends a block is stored there, so that storing needs no check.
struct alignas(64) BlockPair {
  std::int16_t values[128 + 32] = {};
};

/// One 8 x 8 block of an MCU.
struct ScanBlock {
  const HuffmanTable* dc = nullptr;
  const HuffmanTable* ac = nullptr;
  std::size_t component = 0;
};

/// The state of decoding MCUs (minimum coded units, T.81).
struct ScanState {
  BitReader reader;
  /// Decoding stops before an MCU that begins here or later.
  const std::uint8_t* limit = nullptr;
  /// DC coefficient of the previous block of each component.
  std::array<int, 3> dc{};
  std::array<ScanBlock, kMaxMcuBlocks> block{};
  std::size_t blocks = 0;
  /// The quantisation tables of each pair of blocks, in the layout and order of the blocks.
  std::array<BlockPair, kMaxMcuBlocks / 2> quantizers{};
  std::array<BlockPair, kMaxMcuBlocks / 2> coefficients{};
};

/// Where the samples of one block of the next MCU are written. `samples` advances by `step` bytes
/// per MCU.
struct BlockTarget {
  std::uint8_t* samples = nullptr;
  std::size_t stride = 0;
  std::size_t step = 0;
};

struct ScanProgress {
  std::size_t mcus = 0;
  /// Whether a code was not in the table, or a block had more than 64 coefficients.
  bool damaged = false;
};

/// Decodes up to `mcus` MCUs and transforms them into samples. An MCU is at most 1,400 bytes.
PRECAST_API ScanProgress decode_mcus(ScanState& state, std::size_t mcus, JpegDct dct,
                                     std::array<BlockTarget, kMaxMcuBlocks>& targets);

/// Converts a quantisation table to the form that `dct` needs: [64], in natural order.
void scale_quantizers(const std::array<std::uint8_t, 64>& quantizers, JpegDct dct,
                      std::array<std::int16_t, 64>& out);

}  // namespace precast::data
