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
  /// JPEGs without checkpoints that are not in `damaged`, such as those that libjpeg has to decode,
  /// or that are damaged only below the rows that the top-left pixel needs.
  std::uint64_t unindexed = 0;
  /// Sorted by sample. These JPEGs have no checkpoints either.
  std::vector<DamagedJpeg> damaged;
  bool cancelled = false;
};

/// Opens the JPEG index of a dataset's first image field: the sidecar or, if there is none, an
/// empty index that loaders fill. The distance between the checkpoints of an empty index is chosen
/// so that it is likely to fit into `max_bytes`. A sidecar that is invalid or belongs to a
/// different dataset is ignored with a warning. If the dataset consists of several files, each file
/// has its own index.
/// @param max_bytes size limit of an index that loaders fill; 0: no such index. Several files share
/// it in proportion to their numbers of samples.
/// @return null if there is no image field, if none of 1,000 to 2,000 inspected samples (all
/// samples of a smaller dataset) is a JPEG, or if there is no valid sidecar and `max_bytes` is 0.
[[nodiscard]] PRECAST_API std::shared_ptr<JpegIndex> open_jpeg_index(const BetonReader& reader,
                                                                     std::uint64_t max_bytes);

/// Builds the JPEG index of one field. Reads every JPEG once.
/// @return the index, which is incomplete if the work was cancelled. @throws DeviceError if a
/// thread cannot be started.
[[nodiscard]] PRECAST_API std::unique_ptr<JpegIndex> index_dataset(const BetonReader& reader,
                                                                   std::size_t field,
                                                                   std::size_t interval,
                                                                   const ForEachOptions& options,
                                                                   IndexSummary& summary);

}  // namespace precast::data
