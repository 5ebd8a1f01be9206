#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/beton/reader.h"

namespace precast::tools {

/// What becomes of the labels of files that are merged.
enum class LabelRule {
  keep,
  /// A file's labels begin where those of the file before end.
  offset,
  /// Classes of the same name are one; numbered in the order in which files name them.
  by_name,
};

struct MergedLabels {
  /// As DatasetCopy::relabel; empty where labels stay as they are.
  std::function<std::int64_t(std::size_t file, std::int64_t label)> relabel;
  /// Of the merged file's classes; empty unless all files name all of theirs, and agree.
  std::vector<std::string> names;
  /// Why names that some files have are left out; empty otherwise.
  std::string dropped = {};
};

/// @param field of labels, in all files. @param insist with keep: files may call one label by
/// different names, and names are dropped. @throws ConfigError if they do otherwise; DataError for
/// labels that are no class numbers, or have no name where they need one.
[[nodiscard]] MergedLabels merge_labels(const std::vector<const data::BetonReader*>& files,
                                        std::size_t field, LabelRule rule, bool insist);

}  // namespace precast::tools
