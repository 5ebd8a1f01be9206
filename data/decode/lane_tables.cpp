#include "data/decode/lane_tables.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "data/decode/lane_kernels.h"

namespace precast::data {
namespace {

using Symbol = HuffmanTable::Entry;

Symbol first_symbol(const HuffmanTable& table, std::uint64_t bits) {
  const Symbol symbol = table.lookup()[bits >> (64 - HuffmanTable::kLookupBits)];
  return symbol != 0 ? symbol : table.find_long(static_cast<std::uint32_t>(bits >> 48));
}

/// The coefficient after the code (T.81, F.2.2.1).
std::int16_t value_of(Symbol symbol, std::uint64_t bits) {
  const unsigned size = HuffmanTable::size(symbol);
  if (size == 0) return 0;
  const auto value = static_cast<int>(bits << HuffmanTable::code_length(symbol) >> (64 - size));
  const bool is_positive = value >> (size - 1) != 0;
  return static_cast<std::int16_t>(is_positive ? value : value - (1 << size) + 1);
}

/// @param known number of bits in the lookup; all later bits of `bits` are zeros. @return an entry
/// with LaneEntry::kNone if these bits do not determine a symbol.
LaneEntry entry_of(Symbol symbol, std::uint64_t bits, unsigned known, bool is_dc) {
  const unsigned size = HuffmanTable::size(symbol);
  // The first bit of a coefficient, which determines its sign, must also be known.
  const unsigned min_bits = HuffmanTable::code_length(symbol) + (size > 0 ? 1 : 0);
  LaneEntry entry;
  entry.advance = LaneEntry::kNone + (is_dc ? 1 : 0);
  if (symbol == 0 || min_bits > known || HuffmanTable::length(symbol) > LaneEntry::kMaxBits)
    return entry;
  entry.bits = static_cast<std::uint8_t>(HuffmanTable::length(symbol));
  const unsigned missing = std::max(HuffmanTable::length(symbol), known) - known;
  entry.shift = static_cast<std::uint8_t>(64 - known - missing);
  entry.first_value = value_of(symbol, bits);
  if (is_dc) {
    entry.advance = 2;
  } else if (HuffmanTable::advance(symbol) == HuffmanTable::kEndOfBlock) {
    // There is no coefficient, so a zero is written to the next place, which already contains zero.
    entry.advance = 1;
    entry.end = kLastPosition;
  } else {
    entry.advance = static_cast<std::uint8_t>(HuffmanTable::advance(symbol));
  }
  return entry;
}

void add_second(Symbol symbol, std::uint64_t bits, LaneEntry& entry) {
  const std::int16_t value = value_of(symbol, bits);
  if (value != static_cast<std::int8_t>(value)) return;
  entry.bits = static_cast<std::uint8_t>(entry.bits + HuffmanTable::length(symbol));
  if (HuffmanTable::advance(symbol) == HuffmanTable::kEndOfBlock) {
    entry.end = kLastPosition;
    return;
  }
  entry.second_advance = static_cast<std::uint8_t>(HuffmanTable::advance(symbol));
  entry.second_value = static_cast<std::int8_t>(value);
}

std::uint64_t hash_of(std::span<const HuffmanTable> tables) {
  std::uint64_t hash = 0;
  for (const HuffmanTable& table : tables)
    hash = XXH3_64bits_withSeed(table.spec().data(), table.spec().size(), hash + 1);
  return hash;
}

}  // namespace

LaneShape lane_shape_of_cpu() {
  if (!lanes_are_fast()) return {};
  // Measured on Zen 4: with fewer bits, more symbols must be decoded alone, which costs more time
  // than the smaller table saves by fitting better into the 32 KB first-level cache. For a fourth
  // lane, there are not enough registers.
  return {.lanes = 3, .bits = 12};
}

LaneTables::LaneTables(std::span<const HuffmanTable> tables, int bits)
    : bits_(bits), sources_(tables.begin(), tables.end()) {
  std::vector<std::size_t> made;
  for (std::size_t c = 0; c < tables.size(); c += 2) {
    const auto same = std::ranges::find_if(made, [&](std::size_t of) {
      return tables[of].has_same_codes(tables[c]) && tables[of + 1].has_same_codes(tables[c + 1]);
    });
    first_of_.push_back(same != made.end() ? *same : c);
    if (same == made.end()) made.push_back(c);
  }
  entries_.resize(tables.size() << bits);
  for (const std::size_t c : made) {
    fill(c, c + 1);
    fill(c + 1, c + 1);
  }
}

void LaneTables::fill(std::size_t table, std::size_t ac_table) {
  const auto known = static_cast<unsigned>(bits_);
  LaneEntry* const out = entries_.data() + (table << bits_);
  for (std::size_t i = 0; i < std::size_t{1} << bits_; ++i) {
    const std::uint64_t next_bits = std::uint64_t{i} << (64 - bits_);
    const Symbol first = first_symbol(sources_[table], next_bits);
    out[i] = entry_of(first, next_bits, known, table != ac_table);
    const unsigned taken = HuffmanTable::length(first);
    if (out[i].advance >= LaneEntry::kNone || out[i].end != 0 || taken >= known) continue;
    const Symbol second = first_symbol(sources_[ac_table], next_bits << taken);
    if (second != 0 && taken + HuffmanTable::length(second) <= known)
      add_second(second, next_bits << taken, out[i]);
  }
}

bool LaneTables::has_same_codes(std::span<const HuffmanTable> tables) const {
  return std::ranges::equal(tables, sources_, [](const HuffmanTable& a, const HuffmanTable& b) {
    return a.has_same_codes(b);
  });
}

LaneSymbol LaneTables::symbol(const LaneEntry* table, std::uint64_t next_bits) const {
  const auto index = static_cast<std::size_t>(table - entries_.data()) >> bits_;
  const bool is_dc = index % 2 == 0;
  const Symbol symbol = first_symbol(sources_[index], next_bits);
  if (symbol == 0) return {.advance = is_dc ? 2U : 0U};
  const unsigned bits = HuffmanTable::length(symbol);
  if (is_dc) return {true, false, bits, 2, value_of(symbol, next_bits)};
  if (HuffmanTable::advance(symbol) == HuffmanTable::kEndOfBlock) return {true, true, bits, 0, 0};
  return {true, false, bits, HuffmanTable::advance(symbol), value_of(symbol, next_bits)};
}

const LaneTables* LaneTableCache::find(std::span<const HuffmanTable> tables, int bits) {
  const auto known = std::ranges::find_if(
      cached_, [&](const LaneTables& cached) { return cached.has_same_codes(tables); });
  if (known != cached_.end()) {
    std::rotate(cached_.begin(), known, known + 1);
    return &cached_.front();
  }
  const std::uint64_t hash = hash_of(tables);
  if (std::ranges::find(seen_, hash) == seen_.end()) {
    if (seen_.size() < kMaxSeen) {
      seen_.push_back(hash);
    } else {
      seen_[std::exchange(oldest_, (oldest_ + 1) % kMaxSeen)] = hash;
    }
    return nullptr;
  }
  if (cached_.size() == kMaxCached) cached_.pop_back();
  cached_.emplace(cached_.begin(), tables, bits);
  return &cached_.front();
}

}  // namespace precast::data
