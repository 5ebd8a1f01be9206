#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "data/beton/reader.h"
#include "data/beton/several_files.h"
#include "data/jobs/write_dataset.h"
#include "framework/core/export.h"

namespace precast::data {

/// The origin of one sample of a copy.
struct CopiedSample {
  /// Index into DatasetCopy::files.
  std::size_t file = 0;
  std::uint64_t sample = 0;
};

/// Samples of .beton files to be written to a new file.
struct DatasetCopy {
  /// The source files: at least one, all mapped or in memory, and all with the same fields
  /// (check_same_fields()). They must outlive the copy.
  std::vector<const BetonReader*> files;
  std::uint64_t num_samples = 0;
  /// Returns the origin of the sample at position `i` of the new file. Called by all workers
  /// concurrently.
  std::function<CopiedSample(std::uint64_t i)> sample;
  /// If set, maps each value of the int field `label_field` to the value to write. Called by all
  /// workers concurrently.
  std::function<std::int64_t(std::size_t file, std::int64_t label)> relabel;
  std::size_t label_field = 0;
};

/// Writes the file. Values are copied as they are stored, except for relabelled ints. Values are
/// checked against their checksums, if the source file has any, but are not decoded, except to find
/// the checkpoints of a requested JPEG index. Memory use does not grow with the number of bytes
/// that are copied. @throws the errors of write_dataset().
PRECAST_API WriteSummary copy_dataset(const std::filesystem::path& path, const DatasetCopy& copy,
                                      const WriteOptions& options);

}  // namespace precast::data
