#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/jobs/write_dataset.h"
#include "data/sources/source.h"

namespace precast::tools {

/// One way of storing images.
struct StorageWay {
  /// Share of images stored as JPEG: 1 is mode jpg, 0 is raw, values in between are proportion.
  double jpeg_share = 1;
  /// Quality of JPEGs; 0 if there are none.
  int quality = 90;
  /// 0: unchanged.
  int max_resolution_px = 0;
};

/// A way and its cost.
struct MeasuredWay {
  StorageWay way;
  /// Bytes per image: mean, and its standard error.
  double bytes = 0;
  double bytes_error = 0;
  /// Training crops that one core makes per second.
  double images_per_core_second = 0;
};

struct Measurement {
  /// Nested by resolution, then share, then quality (raw: once).
  std::vector<MeasuredWay> ways;
  /// Damaged samples, which are not counted anywhere.
  std::vector<data::SkippedSample> skipped;
};

struct MeasureOptions {
  std::vector<double> jpeg_shares;
  std::vector<int> qualities;
  std::vector<int> resolutions_px;
  /// The samples of the source to measure.
  std::vector<std::uint64_t> samples;
  /// Side of the timed crops.
  int crop_px = 224;
  int workers = 1;
  data::CorruptPolicy on_corrupt = data::CorruptPolicy::fail;
  std::function<void(std::uint64_t)> on_progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// Stores images of a source as `precast write` would, in memory, and decodes them again as
/// training would: a random resized crop and flip. Rates are based on the threads' CPU time; the
/// figures for shares between 0 and 1 are computed from those for 0 and 1. @param field an image
/// field of the source.
/// @throws the errors of the source; DataError if all samples are damaged; Cancelled
[[nodiscard]] Measurement measure_ways(const data::Source& source, std::size_t field,
                                       const MeasureOptions& options);

}  // namespace precast::tools
