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

/// Returns the fields whose blobs the outputs need.
[[nodiscard]] std::vector<std::size_t> blob_fields_of(const std::vector<Output>& outputs);

/// Returns the ranges of the file that contain the sample's blobs of these fields. Empty blobs are
/// left out.
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

/// Reads parts of a file that is not mapped when they are requested, not ahead, into its own
/// memory.
class PRECAST_API DirectWindow {
 public:
  /// @return a window of `reader`'s file that contains `range`, valid until the next call; an empty
  /// window if the file is mapped or `range` is empty. @throws the errors of DiskFile
  [[nodiscard]] FileWindow read(const BetonReader& reader, const FileRange& range);

 private:
  std::vector<std::byte> memory_;
};

}  // namespace precast::data
