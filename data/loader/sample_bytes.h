#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/beton/disk_file.h"
#include "data/cache/extent_plan.h"
#include "data/loader/outputs.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// The fields whose blobs are needed to make the outputs.
[[nodiscard]] std::vector<std::size_t> blob_fields_of(const std::vector<Output>& outputs);

/// The ranges of the file with the sample's blobs of these fields, without empty ranges.
[[nodiscard]] std::vector<FileRange> ranges_of(const BetonReader& reader,
                                               const std::vector<std::size_t>& fields,
                                               std::uint64_t sample);

/// The smallest range of the file that contains the sample's blobs of these fields; empty if they
/// have no bytes.
[[nodiscard]] PRECAST_API FileRange range_of(const BetonReader& reader,
                                             const std::vector<std::size_t>& fields,
                                             std::uint64_t sample);

/// Total size, in bytes, of the sample's blobs of these fields.
[[nodiscard]] std::uint64_t stored_bytes(const BetonReader& reader,
                                         const std::vector<std::size_t>& fields,
                                         std::uint64_t sample);

/// For a file that is not mapped: reads bytes when they are requested, not ahead, and owns them.
class PRECAST_API DirectWindow {
 public:
  /// @return a window of `reader`'s file with `range` in it, valid until the next call; an empty
  /// window if the file is mapped. @throws IoError, DataError as DiskFile
  [[nodiscard]] FileWindow read(const BetonReader& reader, const FileRange& range);

 private:
  std::vector<std::byte> memory_;
};

}  // namespace precast::data
