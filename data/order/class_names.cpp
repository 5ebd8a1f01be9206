#include "data/order/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "data/beton/file_info.h"
#include "data/beton/reader.h"
#include "data/order/order.h"
#include "framework/core/error.h"
#include "framework/core/shell_word.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// Messages list the class names only if there are at most this many.
constexpr std::size_t kMaxSuggested = 30;

/// The likely cause of a difference between the classes.
std::string cause_of(const std::vector<std::string>& train, const std::vector<std::string>& val) {
  const std::set<std::string_view> known(train.begin(), train.end());
  const auto other =
      std::ranges::find_if(val, [&](const std::string& name) { return !known.contains(name); });
  if (other != val.end()) return fmt::format("'{}' is not a class of the training set", *other);
  return val.size() < train.size()
             ? fmt::format("it has {} of the {} classes, and numbers them separately", val.size(),
                           train.size())
             : "it has the same names in a different order";
}

}  // namespace

std::vector<std::int64_t> labels_of_class(std::string_view component, std::string_view name,
                                          const std::vector<std::string>& names,
                                          std::string_view dataset_name) {
  if (names.empty()) {
    throw ConfigError(fmt::format("{}: expected numbers, because {} has no class names, got '{}'",
                                  component, dataset_name, name));
  }
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) labels.push_back(static_cast<std::int64_t>(i));
  if (!labels.empty()) return labels;
  std::string hint = suggest(name, names);
  if (names.size() > kMaxSuggested && hint.starts_with("Known"))
    hint = fmt::format("`precast inspect {} --json` lists its {} classes",
                       shell_word(std::string(dataset_name)), names.size());
  throw ConfigError(fmt::format("{}: expected the name of a class of {}, got '{}'. {}", component,
                                dataset_name, name, hint));
}

std::unordered_map<std::string_view, std::int64_t> labels_by_name(
    const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, std::int64_t> labels;
  for (std::size_t i = 0; i < names.size(); ++i)
    labels.try_emplace(names[i], static_cast<std::int64_t>(i));
  return labels;
}

std::optional<std::pair<std::int64_t, std::int64_t>> find_duplicate_name(
    const std::vector<std::string>& names) {
  const auto labels = labels_by_name(names);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto label = static_cast<std::int64_t>(i);
    const std::int64_t first = labels.at(names[i]);
    if (first != label && !names[i].empty()) return std::pair(first, label);
  }
  return std::nullopt;
}

std::string class_text(std::int64_t label, const std::vector<std::string>& names) {
  const bool named = label >= 0 && static_cast<std::uint64_t>(label) < names.size();
  return named ? fmt::format("{} ({})", label, names[static_cast<std::size_t>(label)])
               : fmt::to_string(label);
}

std::string class_list_text(const std::vector<std::int64_t>& labels,
                            const std::vector<std::string>& names, std::size_t max_count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(labels.size(), max_count); ++i)
    text += (i > 0 ? ", " : "") + class_text(labels[i], names);
  if (labels.size() > max_count) text += fmt::format(" and {} more", labels.size() - max_count);
  return text;
}

std::set<std::int64_t> labels_of(const BetonReader& reader, std::size_t field,
                                 const SampleSet& samples) {
  std::set<std::int64_t> labels;
  for (std::uint64_t i = 0; i < samples.size(); ++i)
    labels.insert(reader.integer(samples[i], field));
  return labels;
}

std::vector<std::int64_t> absent_labels(const std::set<std::int64_t>& all,
                                        const std::set<std::int64_t>& present) {
  std::vector<std::int64_t> absent;
  std::ranges::set_difference(all, present, std::back_inserter(absent));
  return absent;
}

std::string class_conflict(const std::vector<std::string>& train,
                           const std::vector<std::string>& val) {
  if (train.empty() || val.empty()) return {};
  for (std::size_t label = 0; label < val.size(); ++label) {
    if (label < train.size() && train[label] == val[label]) continue;
    return fmt::format("label {} is {} in the training set, but '{}' in the validation set ({})",
                       label,
                       label < train.size() ? "'" + train[label] + "'" : std::string("no class"),
                       val[label], cause_of(train, val));
  }
  return {};
}

void check_common_classes(const BetonReader& dataset, std::size_t field) {
  if (dataset.num_files() == 1) return;
  std::vector<std::vector<std::string>> names;
  std::vector<std::string> named;
  std::string paths;
  for (const BetonReader& file : dataset.files()) {
    paths += file.path().string() + " ";
    std::vector<std::string> own = class_names_of(file, field);
    if (own.empty()) continue;
    names.push_back(std::move(own));
    named.push_back(file.path().string());
  }
  if (names.empty()) return;
  const auto conflict = common_names(names).conflict;
  if (!conflict) return;
  const auto [file, other, label] = *conflict;
  throw ConfigError(fmt::format(
      "{}: expected label {} of '{}' to be '{}', as in {}, got '{}'. Write one file in which "
      "classes of the same name have the same label: precast merge {}OUT.beton --label-field {} "
      "--label-rule by-name",
      named[other], label, dataset.fields()[field].name, names[file][label], named[file],
      names[other][label], paths, shell_word(dataset.fields()[field].name)));
}

}  // namespace precast::data
