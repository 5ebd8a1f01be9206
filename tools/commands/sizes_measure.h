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
struct StorageSettings {
  /// Fraction of the images stored as JPEG: 1 is mode jpg, 0 is raw, and a value in between is
  /// proportion.
  double jpeg_share = 1;
  /// Quality of JPEGs; 0 if there are none.
  int quality = 90;
  /// Limit of the longer side; 0: images are not resized.
  int max_resolution_px = 0;
};

/// One way of storing images, with its measured cost.
struct MeasuredSettings {
  StorageSettings settings;
  /// Bytes per image: mean, and its standard error.
  double bytes = 0;
  double bytes_error = 0;
  /// Training crops that one core decodes per second.
  double images_per_core_second = 0;
};

struct Measurement {
  /// Ordered by resolution, then JPEG share, then quality. Raw has one entry per resolution.
  std::vector<MeasuredSettings> candidates;
  /// Damaged samples, which are not counted anywhere.
  std::vector<data::SkippedSample> skipped;
};

struct MeasureOptions {
  std::vector<double> jpeg_shares;
  std::vector<int> qualities;
  std::vector<int> resolutions_px;
  /// Indices of the source's samples to measure.
  std::vector<std::uint64_t> samples;
  /// Side of the timed crops.
  int crop_px = 224;
  int workers = 1;
  data::CorruptPolicy on_corrupt = data::CorruptPolicy::fail;
  std::function<void(std::uint64_t)> on_progress;
  const std::atomic<bool>* cancel = nullptr;
};

/// Encodes images of a source in memory as `precast write` would, and decodes them as training
/// would, with a random resized crop and flip. Rates are computed from the threads' CPU time. Bytes
/// and times for JPEG shares between 0 and 1 are interpolated between those for 0 and 1.
/// @param field index of an image field of the source.
/// @throws the errors of the source; DataError if all samples are damaged; Cancelled
[[nodiscard]] Measurement measure_settings(const data::Source& source, std::size_t field,
                                           const MeasureOptions& options);

}  // namespace precast::tools
