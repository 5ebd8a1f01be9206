#include "tools/commands/merge_labels.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "data/beton/file_info.h"
#include "data/order/class_names.h"
#include "framework/core/error.h"
#include "framework/core/shell_word.h"

namespace precast::tools {
namespace {

using data::BetonReader;
using Files = std::vector<const BetonReader*>;
using Names = std::vector<std::string>;

/// One past the largest label. @throws DataError for a label that is negative or above INT32_MAX
std::int64_t label_count(const BetonReader& file, std::size_t field) {
  std::int64_t last = 0;
  for (std::uint64_t i = 0; i < file.size(); ++i) {
    const std::int64_t label = file.integer(i, field);
    // With this upper limit, the sum of the label counts of many files cannot overflow.
    if (label < 0 || label > INT32_MAX)
      throw DataError(fmt::format(
          "{}: sample {}: expected a label from 0 to 2147483647, got {}. Use --label-rule keep",
          file.path().string(), i, label));
    last = std::max(last, label);
  }
  return last + 1;
}

/// Explains why names are left out: this file does not name all of its classes, but other files
/// name some of theirs.
std::string missing_names_text(const BetonReader& nameless, std::size_t field) {
  return fmt::format("{} does not name all classes of '{}'", nameless.path().string(),
                     nameless.fields()[field].name);
}

MergedLabels keep(const Files& files, std::size_t field, const std::vector<Names>& names,
                  bool allow_conflicts) {
  data::CommonNames common = data::common_names(names);
  if (common.nameless) return {{}, {}, missing_names_text(*files[*common.nameless], field)};
  if (!common.conflict) return {{}, std::move(common.names), {}};
  const auto [file, other, label] = *common.conflict;
  const std::string first_path = files[file]->path().string();
  const std::string other_path = files[other]->path().string();
  const std::string& name = files[file]->fields()[field].name;
  if (allow_conflicts)
    return {{},
            {},
            fmt::format("{} and {} have different names for label {} of '{}'", first_path,
                        other_path, label, name)};
  throw ConfigError(fmt::format(
      "{}: expected label {} of '{}' to be '{}', as in {}, got '{}'. Use --label-field {} with "
      "--label-rule by-name or offset, which change the labels of one field, or --label-rule keep "
      "to drop the names",
      other_path, label, name, names[file][label], first_path, names[other][label],
      shell_word(name)));
}

MergedLabels offset(const Files& files, std::size_t field, const std::vector<Names>& names) {
  MergedLabels merged;
  std::vector<std::int64_t> offsets;
  std::int64_t next = 0;
  const bool some_named = !std::ranges::all_of(names, &Names::empty);
  for (std::size_t file = 0; file < files.size(); ++file) {
    offsets.push_back(next);
    const std::int64_t labels = label_count(*files[file], field);
    const auto named = static_cast<std::int64_t>(names[file].size());
    next += std::max(labels, named);
    if (named < labels && some_named) merged.dropped = missing_names_text(*files[file], field);
    merged.names.insert(merged.names.end(), names[file].begin(), names[file].end());
  }
  if (!some_named || !merged.dropped.empty()) merged.names.clear();
  merged.relabel = [offsets](std::size_t file, std::int64_t label) {
    return label + offsets[file];
  };
  return merged;
}

/// @throws DataError if by-name is not possible, because a class has no name or two classes have
/// the same name
void check_named(const BetonReader& file, std::size_t field, const Names& names) {
  const auto count = static_cast<std::uint64_t>(label_count(file, field));
  if (count > names.size())
    throw DataError(
        fmt::format("{}: expected a name for each of {} classes, got {}. --label-rule by-name "
                    "needs files that `precast write` made from sources with class names",
                    file.path().string(), count, names.size()));
  const auto nameless = std::ranges::find(names, "");
  if (nameless != names.end())
    throw DataError(
        fmt::format("{}: expected a name for each class, got an empty name for label {}. Use "
                    "--label-rule keep or offset",
                    file.path().string(), nameless - names.begin()));
  if (const auto same = data::find_duplicate_name(names))
    throw DataError(fmt::format(
        "{}: expected a different name for each class, got '{}' for labels {} and {}. Use "
        "--label-rule keep or offset",
        file.path().string(), names[static_cast<std::size_t>(same->first)], same->first,
        same->second));
}

MergedLabels by_name(const Files& files, std::size_t field, const std::vector<Names>& names) {
  MergedLabels merged;
  std::unordered_map<std::string, std::int64_t> numbers;
  std::vector<std::vector<std::int64_t>> maps;
  for (std::size_t file = 0; file < files.size(); ++file) {
    check_named(*files[file], field, names[file]);
    std::vector<std::int64_t>& map = maps.emplace_back();
    for (const std::string& name : names[file]) {
      const auto [known, added] =
          numbers.try_emplace(name, static_cast<std::int64_t>(merged.names.size()));
      if (added) merged.names.push_back(name);
      map.push_back(known->second);
    }
  }
  merged.relabel = [maps](std::size_t file, std::int64_t label) {
    return maps[file].at(static_cast<std::size_t>(label));
  };
  return merged;
}

}  // namespace

MergedLabels merge_labels(const Files& files, std::size_t field, LabelRule rule,
                          bool allow_conflicts) {
  std::vector<Names> names;
  for (const BetonReader* file : files) names.push_back(class_names_of(*file, field));
  if (rule == LabelRule::offset) return offset(files, field, names);
  if (rule == LabelRule::by_name) return by_name(files, field, names);
  return keep(files, field, names, allow_conflicts);
}

}  // namespace precast::tools
