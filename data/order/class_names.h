#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

class BetonReader;
class SampleSet;

/// Returns the labels of the classes with this name; several classes may have the same name.
/// @param component the beginning of the error message. @param names the names of all classes, from
/// class_names_of(). @param dataset_name the file, for the error message. @throws ConfigError if no
/// class has the name (the message suggests the nearest name) or if there are no names.
[[nodiscard]] PRECAST_API std::vector<std::int64_t> labels_of_class(
    std::string_view component, std::string_view name, const std::vector<std::string>& names,
    std::string_view dataset_name);

/// The label of each name: its position in `names`, or its first position if several classes have
/// the name. The keys are views of `names`.
[[nodiscard]] std::unordered_map<std::string_view, std::int64_t> labels_by_name(
    const std::vector<std::string>& names);

/// Two labels whose classes have the same name, the smaller one first; nothing if all names differ.
/// Empty names are ignored.
[[nodiscard]] PRECAST_API std::optional<std::pair<std::int64_t, std::int64_t>> find_duplicate_name(
    const std::vector<std::string>& names);

/// `3 (dogs)`, or `3` if the class has no name.
[[nodiscard]] PRECAST_API std::string class_text(std::int64_t label,
                                                 const std::vector<std::string>& names);

/// The classes of the first `max_count` labels, and the number of the other labels, such as `0
/// (cats), 3 (dogs) and 7 more`.
[[nodiscard]] PRECAST_API std::string class_list_text(const std::vector<std::int64_t>& labels,
                                                      const std::vector<std::string>& names,
                                                      std::size_t max_count = 10);

/// The distinct labels of the samples.
[[nodiscard]] PRECAST_API std::set<std::int64_t> labels_of(const BetonReader& reader,
                                                           std::size_t field,
                                                           const SampleSet& samples);
/// The elements of `all` that are not in `present`, in ascending order.
[[nodiscard]] PRECAST_API std::vector<std::int64_t> absent_labels(
    const std::set<std::int64_t>& all, const std::set<std::int64_t>& present);

/// Checks that each label has the same name in all files of a dataset that have class names. @param
/// field index of the label field.
/// @throws ConfigError naming two files, the label and its names.
PRECAST_API void check_common_classes(const BetonReader& dataset, std::size_t field);

/// Describes the first difference between the class names of a training set and of a dataset for
/// evaluation, and its likely cause. Returns an empty string if labels mean the same in both: each
/// label of `val` has the same name in `train`, which may have more classes. A file without class
/// names is compatible with every other file.
[[nodiscard]] PRECAST_API std::string class_conflict(const std::vector<std::string>& train,
                                                     const std::vector<std::string>& val);

}  // namespace precast::data
