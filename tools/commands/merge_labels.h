#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/beton/reader.h"

namespace precast::tools {

/// How the labels of merged files are changed.
enum class LabelRule {
  keep,
  /// The labels of each file start after the labels of the previous file.
  offset,
  /// Classes with the same name become one class; classes are numbered in the order in which the
  /// files name them.
  by_name,
};

struct MergedLabels {
  /// The value for DatasetCopy::relabel; empty if labels stay unchanged.
  std::function<std::int64_t(std::size_t file, std::int64_t label)> relabel;
  /// The classes of the merged file; empty unless all files name their classes and, with
  /// LabelRule::keep, agree.
  std::vector<std::string> names;
  /// The reason why class names are left out although some files have them; else empty.
  std::string dropped = {};
};

/// Computes the labels and the class names of one int field of the merged file. @param field its
/// index, the same in all files. @param allow_conflicts only for LabelRule::keep: if files give one
/// label different names, drops the names instead of throwing. @throws ConfigError for such files
/// without `allow_conflicts`; DataError, except with LabelRule::keep, if a label is not a class
/// number and, with LabelRule::by_name, if a class has no name or two classes of a file have the
/// same name.
[[nodiscard]] MergedLabels merge_labels(const std::vector<const data::BetonReader*>& files,
                                        std::size_t field, LabelRule rule, bool allow_conflicts);

}  // namespace precast::tools
