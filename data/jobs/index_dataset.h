#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/decode/jpeg_index.h"
#include "data/jobs/each_sample.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// A JPEG that cannot be decoded.
struct DamagedJpeg {
  std::uint64_t sample = 0;
  std::string error;
};

/// The result of indexing.
struct IndexSummary {
  std::uint64_t jpegs = 0;
  /// Intact JPEGs without checkpoints, such as those that libjpeg has to decode.
  std::uint64_t without = 0;
  /// Sorted by sample. These JPEGs have no checkpoints either.
  std::vector<DamagedJpeg> damaged;
  bool cancelled = false;
};

/// Opens the index for a dataset's first image field: its sidecar, or an empty index that loaders
/// fill, with the distance between checkpoints chosen so that it should fit. A sidecar of a
/// different dataset is ignored with a warning. If there are several files, each has its own index.
/// @param max_bytes limit of the index that loaders fill; 0: no such index. It is divided among
/// several files in proportion to their numbers of samples.
/// @return null if there are no JPEGs, or if there is no valid sidecar and `max_bytes` is 0.
[[nodiscard]] PRECAST_API std::shared_ptr<JpegIndex> open_jpeg_index(const BetonReader& reader,
                                                                     std::uint64_t max_bytes);

/// Reads every JPEG of one field once.
/// @return the index; useless if it was cancelled. @throws DeviceError
[[nodiscard]] PRECAST_API std::unique_ptr<JpegIndex> index_dataset(const BetonReader& reader,
                                                                   std::size_t field,
                                                                   std::size_t interval,
                                                                   const EachSample& how,
                                                                   IndexSummary& summary);

}  // namespace precast::data
