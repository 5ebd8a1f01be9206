#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/jobs/each_sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// A value that failed a check.
struct DamagedValue {
  std::uint64_t sample = 0;
  std::size_t field = 0;
  /// The message, without the names of the file, the sample and the field.
  std::string error;
};

struct VerifySummary {
  /// Number of values in pages, and their total size.
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;
  /// Numbers of JPEGs that were decoded completely, and of JSON documents that were parsed.
  std::uint64_t jpegs = 0;
  std::uint64_t json = 0;
  /// Sorted by sample, then by field.
  std::vector<DamagedValue> damaged;
  bool cancelled = false;
};

/// Reads every large value of a mapped file whose pointer is known: compares it with its checksum
/// (if the file has any), decodes JPEGs completely, treating libjpeg's warnings as errors, parses
/// JSON, and checks the shapes in pixels and ragged fields. Does not repeat the checks made when a
/// file is opened. @throws DeviceError if a thread cannot be started.
[[nodiscard]] PRECAST_API VerifySummary verify_dataset(const BetonReader& reader,
                                                       const ForEachOptions& options);

}  // namespace precast::data
