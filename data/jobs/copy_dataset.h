#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "data/beton/reader.h"
#include "data/jobs/write_dataset.h"
#include "framework/core/export.h"

namespace precast::data {

/// Where a sample of a copy comes from.
struct CopiedSample {
  /// Of DatasetCopy::files.
  std::size_t file = 0;
  std::uint64_t sample = 0;
};

/// Samples of .beton files that shall become a file of their own.
struct DatasetCopy {
  /// At least one, mapped or in memory, all of the same fields (check_same_fields); they outlive
  /// the copy.
  std::vector<const BetonReader*> files;
  std::uint64_t num_samples = 0;
  /// What stands at place `i` of the new file. Called from all workers at once.
  std::function<CopiedSample(std::uint64_t i)> sample;
  /// Where set, the int field `label_field` gets what this makes of a file's values. Called from
  /// all workers at once.
  std::function<std::int64_t(std::size_t file, std::int64_t label)> relabel;
  std::size_t label_field = 0;
};

/// @throws DataError naming the first difference in names, types, dtypes or shapes, and the file
/// that has it.
PRECAST_API void check_same_fields(const BetonReader& first, const BetonReader& other);

/// A page that holds any sample of these files: their own size, or a larger one where empty values,
/// which get a byte here, do not fit into it.
[[nodiscard]] PRECAST_API std::uint64_t copy_page_bytes(
    const std::vector<const BetonReader*>& files);

/// Writes the file. Bytes of images and other fields, and the field descriptors, are copied as they
/// are: nothing is decoded, but held against their checksums where there are some. What is in
/// memory does not grow with the bytes copied. @throws as write_dataset.
PRECAST_API WriteSummary copy_dataset(const std::filesystem::path& path, const DatasetCopy& copy,
                                      const WriteOptions& options);

}  // namespace precast::data
