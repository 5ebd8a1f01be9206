#include "data/decode/skip_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "framework/core/rng.h"

namespace precast::data {
namespace {

constexpr std::size_t kScanBytes = 4096;

/// A Huffman table with random code lengths and symbols, such as a JPEG file may contain.
struct RandomTable {
  std::vector<std::uint8_t> counts = std::vector<std::uint8_t>(16);
  std::vector<std::uint8_t> symbols;
  HuffmanTable table;
};

std::vector<std::uint8_t> allowed_symbols(HuffmanTable::Kind kind) {
  std::vector<std::uint8_t> symbols;
  const bool ac = kind == HuffmanTable::Kind::ac;
  for (unsigned run = 0; run < (ac ? 16 : 1); ++run) {
    for (unsigned size = 0; size <= (ac ? 10 : 11); ++size) {
      if (size > 0 || run == 0 || run == 15)
        symbols.push_back(static_cast<std::uint8_t>(run << 4 | size));
    }
  }
  return symbols;
}

/// @param shortest the minimum length of a code. Codes that are longer than the lookup table's
/// index are decoded without the table.
RandomTable random_table(RandomStream& random, HuffmanTable::Kind kind, std::size_t shortest) {
  RandomTable made;
  std::vector<std::uint8_t> symbols = allowed_symbols(kind);
  for (std::size_t i = symbols.size(); i > 1; --i)
    std::swap(symbols[i - 1], symbols[random.below(i)]);
  // Half of the tables get a short code for symbol 0, which ends a block in AC tables. This makes
  // more blocks valid.
  if (random.below(2) == 0) std::swap(*std::ranges::find(symbols, 0), symbols.back());
  // The number of unused codes of length `length`; the code of all ones is not allowed.
  std::uint64_t left = 1;
  for (std::size_t length = 1; length <= 16; ++length) {
    left *= 2;
    if (length < shortest || left < 2) continue;
    const std::uint64_t max_count = std::min<std::uint64_t>(left - 1, symbols.size());
    const std::uint64_t count = length == 16 ? max_count : random.below(max_count + 1);
    made.counts[length - 1] = static_cast<std::uint8_t>(count);
    made.symbols.insert(made.symbols.end(), symbols.end() - static_cast<std::ptrdiff_t>(count),
                        symbols.end());
    symbols.resize(symbols.size() - count);
    left -= count;
  }
  EXPECT_TRUE(made.table.build({made.counts, made.symbols}, kind));
  return made;
}

/// The state of a decoder at `first`, if a scan of a grey image (one block per MCU) begins there.
ScanState state_of(const RandomTable& dc, const RandomTable& ac, const std::uint8_t* first) {
  ScanState state;
  state.reader.start(first, 0);
  state.limit = first + kScanBytes;
  state.blocks = 1;
  state.block[0] = {&dc.table, &ac.table, 0};
  return state;
}

struct Blocks {
  int intact = 0, damaged = 0;
};

/// Decodes and skips the same MCUs, up to the first damage, and compares the states after each.
void compare(const RandomTable& dc, const RandomTable& ac, const std::uint8_t* first,
             Blocks& blocks) {
  ScanState decoding = state_of(dc, ac, first), skipping = state_of(dc, ac, first);
  std::array<std::uint8_t, 64> samples;
  while (decoding.reader.next < decoding.limit) {
    std::array<BlockTarget, kMaxMcuBlocks> targets{};
    targets[0] = {samples.data(), 8, 0};
    const ScanProgress decoded = decode_mcus(decoding, 1, JpegDct::ifast, targets);
    const ScanProgress skipped = skip_mcus(skipping, 1);
    ASSERT_EQ(skipped.damaged, decoded.damaged);
    ++(decoded.damaged ? blocks.damaged : blocks.intact);
    if (decoded.damaged) return;
    ASSERT_EQ(skipping.reader.position(first), decoding.reader.position(first));
    ASSERT_EQ(skipping.dc, decoding.dc);
  }
}

TEST(SkipKernels, ReadingOverABlockEndsWhereDecodingItDoes) {
  Blocks blocks;
  for (std::uint64_t round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    RandomStream random(17, 0, round, RandomUse::test);
    const RandomTable dc = random_table(random, HuffmanTable::Kind::dc, 1 + round % 3);
    const RandomTable ac = random_table(random, HuffmanTable::Kind::ac, 1 + round % 7);
    std::vector<std::uint8_t> scan(2 * kScanBytes);
    for (std::uint8_t& byte : scan) byte = static_cast<std::uint8_t>(random.below(256));
    for (std::size_t first = 0; first < 1000; first += 25) {
      compare(dc, ac, scan.data() + first, blocks);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_GT(blocks.intact, 50'000);
  EXPECT_GT(blocks.damaged, 10'000);
}

/// Writes bits in the order of a scan: the most significant bit of each byte first.
class BitWriter {
 public:
  void put(std::uint32_t bits, unsigned count) {
    while (count-- > 0) {
      if (used_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<std::uint8_t>((bits >> count & 1U) << (7 - used_ % 8));
      ++used_;
    }
  }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
};

/// Writes the symbol at index `index` of the table, and a random coefficient.
void put(RandomStream& random, const RandomTable& made, std::size_t index, BitWriter& out) {
  std::uint32_t code = 0;
  std::size_t first = 0;
  unsigned length = 1;
  for (; index >= first + made.counts[length - 1]; ++length) {
    first += made.counts[length - 1];
    code = (code + made.counts[length - 1]) << 1;
  }
  out.put(code + static_cast<std::uint32_t>(index - first), length);
  const unsigned size = made.symbols[index] & 15U;
  out.put(static_cast<std::uint32_t>(random.below(std::uint64_t{1} << size)), size);
}

std::size_t end_of_block(const RandomTable& ac) {
  return static_cast<std::size_t>(std::ranges::find(ac.symbols, 0) - ac.symbols.begin());
}

RandomTable random_table_with_end(RandomStream& random) {
  while (true) {
    RandomTable made = random_table(random, HuffmanTable::Kind::ac, 2);
    if (end_of_block(made) < made.symbols.size()) return made;
  }
}

void put_block(RandomStream& random, const RandomTable& dc, const RandomTable& ac, BitWriter& out) {
  put(random, dc, random.below(dc.symbols.size()), out);
  for (unsigned k = 0; k < 63;) {
    // Uses the shorter of two random codes.
    std::size_t index = std::min(random.below(ac.symbols.size()), random.below(ac.symbols.size()));
    k += (ac.symbols[index] >> 4) + 1U;
    if (k > 63) index = end_of_block(ac);
    put(random, ac, index, out);
    if (ac.symbols[index] == 0) return;
  }
}

/// A scan with 1, 3, 4 or 6 blocks per MCU. The last two of 3 or more blocks may use the chroma
/// tables; all others use the luma tables.
class RandomScan {
 public:
  explicit RandomScan(RandomStream& random)
      : blocks_(std::array<std::size_t, 4>{1, 3, 4, 6}[random.below(4)]),
        shared_tables_(random.below(3) == 0) {
    for (RandomTable& table : dc_) table = random_table(random, HuffmanTable::Kind::dc, 2);
    for (RandomTable& table : ac_) table = random_table_with_end(random);
    BitWriter out;
    for (std::size_t i = 0; i < mcus_ * blocks_; ++i)
      put_block(random, dc_[table_of(i % blocks_)], ac_[table_of(i % blocks_)], out);
    bytes = out.bytes();
    size = bytes.size();
    bytes.resize(size + 4096);
  }

  [[nodiscard]] ScanState state() const {
    ScanState state;
    state.reader.start(bytes.data(), 0);
    state.limit = bytes.data() + size + 8;
    state.blocks = blocks_;
    for (std::size_t b = 0; b < blocks_; ++b)
      state.block[b] = {&dc_[table_of(b)].table, &ac_[table_of(b)].table, table_of(b)};
    return state;
  }

  /// The end of the last MCU, found by decoding all MCUs; nothing if an MCU is damaged or extends
  /// past the end of the scan.
  [[nodiscard]] std::optional<std::size_t> end_by_decoding() const {
    ScanState decoding = state();
    std::array<std::uint8_t, 64> samples;
    std::array<BlockTarget, kMaxMcuBlocks> targets;
    targets.fill({samples.data(), 8, 0});
    const ScanProgress progress = decode_mcus(decoding, mcus_, JpegDct::ifast, targets);
    if (progress.damaged || progress.mcus < mcus_) return std::nullopt;
    return end_of(decoding);
  }
  [[nodiscard]] std::optional<std::size_t> end_by_skipping() const {
    ScanState skipping = state();
    if (!skip_scan(skipping, mcus_ * blocks_)) return std::nullopt;
    return end_of(skipping);
  }

  std::vector<std::uint8_t> bytes;
  /// The size without the zeros after the scan.
  std::size_t size = 0;

 private:
  [[nodiscard]] std::size_t table_of(std::size_t block) const {
    return !shared_tables_ && blocks_ > 1 && block + 2 >= blocks_ ? 1 : 0;
  }
  [[nodiscard]] std::optional<std::size_t> end_of(const ScanState& state) const {
    const std::size_t end = state.reader.position(bytes.data());
    return end <= size * 8 ? std::optional(end) : std::nullopt;
  }

  std::size_t blocks_;
  bool shared_tables_;
  std::size_t mcus_ = 1200 / blocks_;
  std::array<RandomTable, 2> dc_, ac_;
};

TEST(SkipKernels, AScanReadInTwoPlacesEndsWhereDecodingItDoes) {
  int intact = 0;
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomStream random(23, 0, round, RandomUse::test);
    RandomScan scan(random);
    ASSERT_GT(scan.size, 2048U);
    ASSERT_TRUE(scan.end_by_decoding());
    ASSERT_EQ(scan.end_by_skipping(), scan.end_by_decoding());
    for (int i = 0; i < 60; ++i) {
      // Flips a bit: anywhere, near the middle (where the second reader begins), or near the end.
      const std::size_t offsets[] = {random.below(scan.size),
                                     scan.size / 2 - 100 + random.below(400),
                                     scan.size - 1 - random.below(400)};
      std::uint8_t& byte = scan.bytes[offsets[i % 3]];
      const auto bit = static_cast<std::uint8_t>(1U << random.below(8));
      byte ^= bit;
      const auto end = scan.end_by_decoding();
      ASSERT_EQ(scan.end_by_skipping(), end);
      intact += end.has_value() ? 1 : 0;
      byte ^= bit;
    }
  }
  // If a flipped bit only changes a coefficient, the scan is still valid.
  EXPECT_GT(intact, 1000);
}

}  // namespace
}  // namespace precast::data
