#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/beton/allocation_table.h"
#include "data/beton/metadata.h"

namespace precast::data {

/// The size of each sample's blobs and, in files with custom fields, the blobs that no known
/// pointer refers to. Immutable.
class BlobIndex {
 public:
  BlobIndex() = default;
  /// Checks the pointers of the metadata against the table, except those of custom fields and of
  /// empty values. @param location the file's name, for messages. @throws DataError for a pointer
  /// or a size that does not agree with the table, and for an image of unknown mode or without
  /// pixels.
  BlobIndex(const BetonMetadata& metadata, const AllocationTable& table,
            const std::string& location);

  /// Whether the field's values are blobs whose pointers are known.
  [[nodiscard]] bool has_blobs(std::size_t field) const { return !sizes_[field].empty(); }
  /// Size of a blob in bytes; 0 if there is none or if its pointer is unknown.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t sample, std::size_t field) const {
    return sizes_[field].empty() ? 0 : sizes_[field][sample];
  }
  /// The sample's entries in the table that no known pointer refers to, sorted by pointer.
  [[nodiscard]] std::span<const Allocation> unclaimed(std::uint64_t sample) const;
  /// Bytes of memory that this object holds.
  [[nodiscard]] std::uint64_t memory_bytes() const;

 private:
  /// [field][sample]: bytes of the blob; empty for numbers, and for custom fields whose pointer is
  /// unknown. A page has at most 2 GiB, so 32 bits suffice.
  std::vector<std::vector<std::uint32_t>> sizes_;
  /// Sorted by sample, then by pointer. Empty if there is no custom field.
  std::vector<Allocation> unclaimed_;
};

}  // namespace precast::data
