#include "data/decode/scan_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/core/rng.h"

namespace precast::data {
namespace {

constexpr std::size_t kScanBytes = 4096;

/// A Huffman table as a file could have one: lengths and symbols by chance.
struct MadeUpTable {
  std::vector<std::uint8_t> counts = std::vector<std::uint8_t>(16);
  std::vector<std::uint8_t> symbols;
  HuffmanTable table;
};

std::vector<std::uint8_t> allowed_symbols(HuffmanTable::Kind kind) {
  std::vector<std::uint8_t> symbols;
  for (unsigned run = 0; run < (kind == HuffmanTable::Kind::ac ? 16 : 1); ++run) {
    for (unsigned size = 0; size <= 10; ++size) {
      if (size > 0 || run == 0 || run == 15)
        symbols.push_back(static_cast<std::uint8_t>(run << 4 | size));
    }
  }
  return symbols;
}

/// @param shortest of the codes; long ones are not in the table's lookups.
MadeUpTable made_up(RandomStream& random, HuffmanTable::Kind kind, std::size_t shortest) {
  MadeUpTable made;
  std::vector<std::uint8_t> symbols = allowed_symbols(kind);
  for (std::size_t i = symbols.size(); i > 1; --i)
    std::swap(symbols[i - 1], symbols[random.below(i)]);
  // With a short code for the end of a block more blocks are in order.
  if (random.below(2) == 0) std::swap(*std::ranges::find(symbols, 0), symbols.back());
  // Codes left of this length; all ones is none.
  std::uint64_t left = 1;
  for (std::size_t length = 1; length <= 16; ++length) {
    left *= 2;
    if (length < shortest || left < 2) continue;
    const std::uint64_t most = std::min<std::uint64_t>(left - 1, symbols.size());
    const std::uint64_t count = length == 16 ? most : random.below(most + 1);
    made.counts[length - 1] = static_cast<std::uint8_t>(count);
    made.symbols.insert(made.symbols.end(), symbols.end() - static_cast<std::ptrdiff_t>(count),
                        symbols.end());
    symbols.resize(symbols.size() - count);
    left -= count;
  }
  EXPECT_TRUE(made.table.build({made.counts, made.symbols}, kind));
  return made;
}

/// Grey, an MCU of a block. Begins at `first`.
ScanState state_of(const MadeUpTable& dc, const MadeUpTable& ac, const std::uint8_t* first) {
  ScanState state;
  state.reader.start(first, 0);
  state.limit = first + kScanBytes;
  state.blocks = 1;
  state.block[0] = {&dc.table, &ac.table, 0};
  return state;
}

struct Blocks {
  int in_order = 0, damaged = 0;
};

/// Reads the same bits both ways, up to the first damage.
void compare(const MadeUpTable& dc, const MadeUpTable& ac, const std::uint8_t* first,
             Blocks& blocks) {
  ScanState decoding = state_of(dc, ac, first), skipping = state_of(dc, ac, first);
  std::array<std::uint8_t, 64> samples;
  while (decoding.reader.next < decoding.limit) {
    std::array<BlockTarget, kMaxMcuBlocks> targets{};
    targets[0] = {samples.data(), 8, 0};
    const ScanProgress decoded = decode_mcus(decoding, 1, JpegDct::ifast, targets);
    const ScanProgress skipped = skip_mcus(skipping, 1);
    ASSERT_EQ(skipped.damaged, decoded.damaged);
    ++(decoded.damaged ? blocks.damaged : blocks.in_order);
    if (decoded.damaged) return;
    ASSERT_EQ(skipping.reader.position(first), decoding.reader.position(first));
    ASSERT_EQ(skipping.dc, decoding.dc);
  }
}

TEST(ScanKernels, ReadingOverABlockEndsWhereDecodingItDoes) {
  Blocks blocks;
  for (std::uint64_t round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    RandomStream random(17, 0, round, RandomUse::test);
    const MadeUpTable dc = made_up(random, HuffmanTable::Kind::dc, 1 + round % 3);
    const MadeUpTable ac = made_up(random, HuffmanTable::Kind::ac, 1 + round % 7);
    std::vector<std::uint8_t> scan(2 * kScanBytes);
    for (std::uint8_t& byte : scan) byte = static_cast<std::uint8_t>(random.below(256));
    for (std::size_t first = 0; first < 1000; first += 25) {
      compare(dc, ac, scan.data() + first, blocks);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_GT(blocks.in_order, 50'000);
  EXPECT_GT(blocks.damaged, 10'000);
}

}  // namespace
}  // namespace precast::data
