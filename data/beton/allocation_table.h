#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/beton/format.h"

namespace precast::data {

/// One entry of the table at the end of a file: which sample owns the bytes [pointer, pointer +
/// size).
struct Allocation {
  std::uint64_t sample = 0;
  std::uint64_t pointer = 0;
  std::uint64_t size = 0;
};

/// The allocation table, checked and sorted by pointer (FFCV writes it in the order in which its
/// workers finished). Entries of size 0 are dropped, because FFCV gives them meaningless pointers.
/// Immutable.
class AllocationTable {
 public:
  AllocationTable() = default;
  /// @param table          the bytes from the header's table offset to the end of the file.
  /// @param metadata_end   the first byte where a blob may be.
  /// @param location          the file's name, for messages.
  /// @throws DataError if the table's size is not a multiple of 24 bytes, or for an entry that
  /// belongs to an unknown sample, or for a non-empty entry that is outside [metadata_end,
  /// header.table_offset), crosses a page boundary or overlaps another entry.
  AllocationTable(std::span<const std::byte> table, const BetonHeader& header,
                  std::uint64_t metadata_end, const std::string& location);

  [[nodiscard]] std::span<const Allocation> entries() const { return entries_; }

  /// Returns the entry that begins at `pointer`, or nullptr. @param hint index of the entry that is
  /// tried before a binary search; 0 in the first call. On success it is set to the index after the
  /// found entry, so lookups in file order take constant time each.
  [[nodiscard]] const Allocation* find(std::uint64_t pointer, std::size_t& hint) const;

 private:
  std::vector<Allocation> entries_;
};

}  // namespace precast::data
