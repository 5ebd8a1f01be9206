#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/beton/disk_file.h"
#include "data/cache/extent_plan.h"
#include "data/loader/outputs.h"

namespace precast::data {

class BetonReader;

/// The fields whose blobs the outputs are made from.
[[nodiscard]] std::vector<std::size_t> blob_fields_of(const std::vector<Output>& outputs);

/// Ranges of the file with the bytes of these fields of a sample; without empty ones.
[[nodiscard]] std::vector<FileRange> ranges_of(const BetonReader& reader,
                                               const std::vector<std::size_t>& fields,
                                               std::uint64_t sample);

/// The range of the file with all the bytes of these fields of a sample; empty if there are none.
[[nodiscard]] FileRange range_of(const BetonReader& reader, const std::vector<std::size_t>& fields,
                                 std::uint64_t sample);

/// Total bytes of the blobs of these fields.
[[nodiscard]] std::uint64_t stored_bytes(const BetonReader& reader,
                                         const std::vector<std::size_t>& fields,
                                         std::uint64_t sample);

/// Bytes of a file that is not mapped, read when they are requested and not ahead. Owns the bytes.
class DirectWindow {
 public:
  /// @return a window of `reader`'s file with `range` in it, valid until the next call; an empty
  /// window if the file is mapped. @throws IoError, DataError as DiskFile
  [[nodiscard]] FileWindow read(const BetonReader& reader, const FileRange& range);

 private:
  std::vector<std::byte> memory_;
};

}  // namespace precast::data
