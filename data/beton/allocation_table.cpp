#include "data/beton/allocation_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "framework/core/error.h"

namespace precast::data {
namespace {

constexpr auto kByPointer = [](const Allocation& a, const Allocation& b) {
  return a.pointer < b.pointer;
};

/// The limits that every entry must meet.
struct Limits {
  std::uint64_t num_samples;
  std::uint64_t begin;
  std::uint64_t end;
  int page_shift;

  [[nodiscard]] bool allow(const Allocation& entry) const {
    // No sum can overflow, because the comparisons before it limit its operands.
    return entry.sample < num_samples && entry.pointer >= begin && entry.pointer <= end &&
           entry.size <= end - entry.pointer &&
           entry.pointer >> page_shift == (entry.pointer + entry.size - 1) >> page_shift;
  }
};

[[noreturn]] void throw_invalid_entry(const Allocation& entry, std::size_t index,
                                      const Limits& limits, const std::string& location) {
  const std::string here = fmt::format("{}: allocation table entry {}", location, index);
  if (entry.sample >= limits.num_samples) {
    throw DataError(fmt::format("{}: expected a sample id below {}, got {}", here,
                                limits.num_samples, entry.sample));
  }
  if (entry.pointer < limits.begin || entry.pointer > limits.end ||
      entry.size > limits.end - entry.pointer) {
    throw DataError(fmt::format("{}: expected bytes inside [{}, {}), got {} bytes at {}", here,
                                limits.begin, limits.end, entry.size, entry.pointer));
  }
  throw DataError(fmt::format("{}: expected bytes inside one page of {} bytes, got {} bytes at {}",
                              here, std::uint64_t{1} << limits.page_shift, entry.size,
                              entry.pointer));
}

void check_no_overlap(std::span<const Allocation> sorted, const std::string& location) {
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Allocation& before = sorted[i - 1];
    if (before.pointer + before.size <= sorted[i].pointer) continue;
    throw DataError(fmt::format(
        "{}: allocation table: expected values that do not overlap, got {} bytes at {} (sample {}) "
        "that overlap {} bytes at {} (sample {})",
        location, before.size, before.pointer, before.sample, sorted[i].size, sorted[i].pointer,
        sorted[i].sample));
  }
}

}  // namespace

AllocationTable::AllocationTable(std::span<const std::byte> table, const BetonHeader& header,
                                 std::uint64_t metadata_end, const std::string& location) {
  if (table.size() % kAllocationBytes != 0) {
    throw DataError(fmt::format(
        "{}: allocation table at byte {}: expected a multiple of {} bytes, got {}. The file "
        "is truncated or has extra bytes after its table",
        location, header.table_offset, kAllocationBytes, table.size()));
  }
  const Limits limits{header.num_samples, metadata_end, header.table_offset,
                      std::countr_zero(header.page_bytes)};
  const std::size_t count = table.size() / kAllocationBytes;
  entries_.reserve(count);
  bool sorted = true;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* at = table.data() + i * kAllocationBytes;
    const Allocation entry{load<std::uint64_t>(at), load<std::uint64_t>(at + 8),
                           load<std::uint64_t>(at + 16)};
    if (entry.size == 0 && entry.sample < limits.num_samples) continue;
    if (!limits.allow(entry)) throw_invalid_entry(entry, i, limits, location);
    sorted = sorted && entry.pointer >= last;
    last = entry.pointer;
    entries_.push_back(entry);
  }
  if (!sorted) std::ranges::sort(entries_, kByPointer);
  check_no_overlap(entries_, location);
}

const Allocation* AllocationTable::find(std::uint64_t pointer, std::size_t& hint) const {
  if (hint >= entries_.size() || entries_[hint].pointer != pointer) {
    const auto found = std::ranges::lower_bound(entries_, pointer, {}, &Allocation::pointer);
    hint = static_cast<std::size_t>(found - entries_.begin());
    if (found == entries_.end() || found->pointer != pointer) return nullptr;
  }
  return &entries_[hint++];
}

}  // namespace precast::data
