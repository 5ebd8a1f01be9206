#pragma once

#include <optional>
#include <string>

#include "framework/core/config/node.h"

namespace precast::tools {

/// Two hashes (16 hex digits each) that show whether a dataset was written again with other
/// content.
struct DatasetContent {
  /// BetonReader::fingerprint(): labels, and the sizes and offsets of large values.
  std::string fingerprint;
  /// A hash of the stored checksums of all large values, such as images; empty if a file has no
  /// checksums.
  std::string checksums;
};

/// Identifies the content of a dataset. Reads its records, its table and its checksums, but no
/// image: seconds for 10 million samples. The process remembers the result; later calls read the
/// files again only if their status (inode, size, times) has changed. Thread-safe. @param files the
/// value of one of kDatasetKeys. @return nothing if any file is at a URL or is not a valid .beton
/// file, or if the files have different fields.
[[nodiscard]] std::optional<DatasetContent> dataset_content(const ConfigNode& files);

}  // namespace precast::tools
