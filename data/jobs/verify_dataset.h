#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "data/jobs/each_sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// A value that does not match what its file states.
struct DamagedValue {
  std::uint64_t sample = 0;
  std::size_t field = 0;
  /// Without the file, the sample and the field.
  std::string error;
};

struct VerifySummary {
  /// Values in pages, and their bytes.
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;
  /// JPEGs that were decoded completely, and JSON documents that were parsed.
  std::uint64_t jpegs = 0;
  std::uint64_t json = 0;
  /// Sorted by sample, then by field.
  std::vector<DamagedValue> damaged;
  bool cancelled = false;
};

/// Reads every value of a mapped file: compares it with its checksum (if the file has any), decodes
/// JPEGs completely, treating libjpeg's warnings as errors, and parses JSON. Does not repeat the
/// checks that opening a file makes. @throws DeviceError
[[nodiscard]] PRECAST_API VerifySummary verify_dataset(const BetonReader& reader,
                                                       const EachSample& how);

}  // namespace precast::data
