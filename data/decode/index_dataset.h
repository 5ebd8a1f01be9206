#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "data/decode/jpeg_index.h"
#include "framework/core/export.h"

namespace precast::data {

class BetonReader;

/// What indexing has found.
struct IndexSummary {
  std::uint64_t jpegs = 0;
  /// JPEGs without checkpoints: such as libjpeg has to decode.
  std::uint64_t without = 0;
};

/// The index for a dataset's first image field: its sidecar, or an empty one that loaders fill,
/// with so many MCUs from one checkpoint to the next that it should fit. A sidecar of another
/// dataset is warned of and left.
/// @param max_bytes of the one that is filled; 0: none.
/// @return null if there are no JPEGs, or nothing is to be kept.
[[nodiscard]] PRECAST_API std::shared_ptr<JpegIndex> open_jpeg_index(const BetonReader& reader,
                                                                     std::uint64_t max_bytes);

/// Reads over every JPEG of one field once, on `workers` threads.
/// @param on_progress called now and then, from this thread, with the samples done.
/// @throws DataError naming the first damaged sample.
[[nodiscard]] PRECAST_API std::unique_ptr<JpegIndex> index_dataset(
    const BetonReader& reader, std::size_t field, std::size_t interval, int workers,
    const std::function<void(std::uint64_t)>& on_progress, IndexSummary& summary);

}  // namespace precast::data
