#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/beton/bytes.h"
#include "data/beton/metadata.h"
#include "data/beton/sums.h"

namespace precast::data {

/// The checksums of a .beton file: in the file, in FILE.sum next to it, or none.
class StoredSums {
 public:
  StoredSums() = default;
  /// Finds the checksums and checks header, fields, metadata and table against them. Refers to the
  /// bytes of `file`. @param table the allocation table's bytes. @throws DataError if something
  /// does not match, or if the checksums are damaged or belong to another file.
  StoredSums(const BetonBytes& file, const BetonMetadata& metadata,
             std::span<const std::byte> table);

  /// The checksums; empty() if there are none.
  [[nodiscard]] const FileSums& sums() const { return sums_; }
  /// Size in bytes of the checksums inside the file; 0 if the file does not contain any.
  [[nodiscard]] std::uint64_t embedded_bytes() const { return embedded_bytes_; }
  /// Bytes of memory that this object holds.
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_.size(); }

 private:
  /// The block of checksums in the file, or next to it; empty if there is none. @{
  [[nodiscard]] std::span<const std::byte> find_embedded(const BetonBytes& file,
                                                         const BetonMetadata& metadata);
  [[nodiscard]] std::span<const std::byte> read_sidecar(const BetonBytes& file);
  /// @}

  /// The bytes to which sums_ refers, unless they are mapped or part of a file in memory.
  std::vector<std::byte> memory_;
  FileSums sums_;
  std::uint64_t embedded_bytes_ = 0;
};

/// Number of fields before `field` that have a pointer (FieldInfo::has_pointer()).
[[nodiscard]] std::size_t value_fields_before(const BetonMetadata& metadata, std::size_t field);

/// Hashes the parts that the checksums' trailer covers. @param table the allocation table's bytes.
[[nodiscard]] SumsTrailer hash_extents(const BetonBytes& file, const BetonMetadata& metadata,
                                       std::span<const std::byte> table);

}  // namespace precast::data
