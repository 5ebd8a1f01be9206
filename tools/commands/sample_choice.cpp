#include "tools/commands/sample_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "data/beton/file_info.h"
#include "data/order/class_names.h"
#include "data/order/filter.h"
#include "data/order/labels.h"
#include "data/order/subset.h"
#include "framework/core/error.h"
#include "framework/core/parse_number.h"
#include "framework/core/shell_word.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using Ids = std::vector<std::uint64_t>;

/// Parses a number.
/// @return `missing` for an empty string; nullopt if the string is not a number.
std::optional<std::uint64_t> parse_bound(std::string_view text, std::uint64_t missing) {
  return text.empty() ? missing : parse_number<std::uint64_t>(text);
}

/// Parses `N` or `A:B`. @return the first number, and one past the last. @throws ConfigError
std::pair<std::uint64_t, std::uint64_t> parse_range(std::string_view option, std::string_view text,
                                                    std::uint64_t end) {
  const std::size_t colon = text.find(':');
  const auto first = parse_bound(text.substr(0, colon), 0);
  const auto last = colon == std::string_view::npos ? (first ? std::optional(*first + 1) : first)
                                                    : parse_bound(text.substr(colon + 1), end);
  if (!first || !last || *first >= *last || *last > end) {
    throw ConfigError(
        fmt::format("--{0}: expected N below {1}, or A:B with A < B and B at most {1}, got '{2}'",
                    option, end, text));
  }
  return {*first, *last};
}

/// The labels that occur in the field, ascending, except negative ones.
Ids labels_in(const data::BetonReader& reader, std::size_t field) {
  std::unordered_set<std::uint64_t> found;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const std::int64_t label = reader.integer(i, field);
    if (label >= 0) found.insert(static_cast<std::uint64_t>(label));
  }
  Ids labels(found.begin(), found.end());
  std::ranges::sort(labels);
  return labels;
}

/// A string in an expression of --where.
std::string in_quotes(std::string_view text) {
  const char quote = text.find('"') == std::string_view::npos ? '"' : '\'';
  return fmt::format("{0}{1}{0}", quote, text);
}

/// A field's name in an expression of --where, in quotes if it is not a plain word.
std::string in_expression(const std::string& field) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const bool is_word = !field.empty() && std::isdigit(static_cast<unsigned char>(field[0])) == 0 &&
                       std::ranges::all_of(field, in_word);
  return is_word ? field : in_quotes(field);
}

/// Finds the labels for the parts of --classes.
class ClassChoice {
 public:
  ClassChoice(const data::BetonReader& reader, std::size_t field)
      : file_(reader.path().string()),
        field_(in_expression(reader.fields()[field].name)),
        names_(data::class_names_of(reader, field)),
        present_(labels_in(reader, field)),
        end_(std::max<std::uint64_t>(present_.empty() ? 1 : present_.back() + 1, names_.size())) {}

  /// Adds the labels of the class that `part` names. If there is no such class, `part` is a label
  /// or a range of labels.
  /// @throws ConfigError, also for a name that is the label of another class
  void add(const std::string& part, std::unordered_set<std::uint64_t>& labels) const {
    const bool is_name = std::ranges::find(names_, part) != names_.end();
    if (!is_name && part.find_first_not_of("0123456789:") == std::string::npos) {
      // Labels can be very large, so only those that occur are listed.
      const auto [first, last] = parse_range("classes", part, end_);
      labels.insert(std::ranges::lower_bound(present_, first),
                    std::ranges::lower_bound(present_, last));
      return;
    }
    const std::vector<std::int64_t> named = labels_named(part);
    check_unambiguous(part, named);
    for (const std::int64_t label : named) labels.insert(static_cast<std::uint64_t>(label));
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> labels_named(const std::string& name) const {
    try {
      return data::labels_of_class("--classes", name, names_, file_);
    } catch (const ConfigError& error) {
      const auto with_comma = std::ranges::find_if(names_, [&](const std::string& known) {
        return known.find(',') != std::string::npos && known.find(name) != std::string::npos;
      });
      if (with_comma == names_.end()) throw;
      throw ConfigError(fmt::format("{} (a name with a comma needs {})", error.what(),
                                    where_option(in_quotes(*with_comma))));
    }
  }

  /// @param named the labels of the classes called `name`
  void check_unambiguous(const std::string& name, const std::vector<std::int64_t>& named) const {
    const auto number = parse_bound(name, end_);
    if (!number || *number >= end_) return;
    const auto label = static_cast<std::int64_t>(*number);
    if (std::ranges::all_of(named, [&](std::int64_t other) { return other == label; })) return;
    throw ConfigError(fmt::format(
        "--classes: expected a label or a class of {}, got '{}', which is label {} and also the "
        "name of class {}. Give {} or {}",
        file_, name, data::class_text(label, names_), data::class_list_text(named, names_),
        where_option(fmt::to_string(label)), where_option(in_quotes(name))));
  }

  /// The --where option that selects samples by `value`: a label, or a class name in quotes.
  [[nodiscard]] std::string where_option(const std::string& value) const {
    return "--where " + shell_word(fmt::format("{} == {}", field_, value));
  }

  std::string file_;
  /// The field's name in an expression of --where.
  std::string field_;
  std::vector<std::string> names_;
  Ids present_;
  /// One past the largest label.
  std::uint64_t end_;
};

/// The samples whose label is in --classes.
Ids ids_of_classes(const Arguments& arguments, const data::BetonReader& reader) {
  const std::size_t field = chosen_label_field(arguments, reader);
  const ClassChoice choice(reader, field);
  std::unordered_set<std::uint64_t> classes;
  for (const std::string& part : split_list("classes", arguments.text("classes")))
    choice.add(part, classes);
  Ids selected;
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    const std::int64_t label = reader.integer(i, field);
    if (label >= 0 && classes.contains(static_cast<std::uint64_t>(label))) selected.push_back(i);
  }
  return selected;
}

/// Returns the error with the option as its prefix. Most messages of data/order begin with `key`,
/// which is removed.
ConfigError error_of_option(std::string_view option, std::string_view key,
                            const ConfigError& error) {
  std::string_view message = error.what();
  const std::string prefix = fmt::format("{}: ", key);
  if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
  return ConfigError(fmt::format("--{}: {}", option, message));
}

Ids ids_of_expression(const std::string& expression, const data::BetonReader& reader) {
  try {
    return data::SampleFilter(expression).select(reader, 0, reader.size());
  } catch (const ConfigError& error) {
    throw error_of_option("where", "filter", error);
  }
}

}  // namespace

void add_choice_options(Arguments& arguments) {
  arguments.options().add_options()(
      "where", po::value<std::string>()->value_name("EXPRESSION"),
      "only samples that match an expression; such as 'label in (1, 5) and width > 300 and mode == "
      "jpg'. It may contain number fields, and width, height, mode and bytes of the first image "
      "(FIELD.width ... of another image). Put names that are not plain words in double quotes, as "
      "in '\"class id\" == 1'; give classes by name, as in 'label == \"dogs\"'")(
      "samples", po::value<std::string>()->value_name("RANGES"),
      "only samples with these ids; 0:100,205 are ids 0 to 99, and 205; random:N draws N ids; "
      "@FILE reads the ids from a text file")(
      "classes", po::value<std::string>()->value_name("RANGES"),
      "only samples with these labels; 0,5,100:200, or class names such as cats,dogs. A number "
      "that is a class's name means that class, and is an error if it is another class's label")(
      "label-field", po::value<std::string>()->default_value(""), kLabelFieldHelp);
}

std::vector<std::uint64_t> parse_ranges(std::string_view option, std::string_view text,
                                        std::uint64_t end) {
  Ids ids;
  for (const std::string& part : split_list(option, text)) {
    const auto [first, last] = parse_range(option, part, end);
    const std::size_t begin = ids.size();
    ids.resize(begin + (last - first));
    std::iota(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(), first);
  }
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
  return ids;
}

std::vector<std::uint64_t> parse_samples(std::string_view option, const std::string& text,
                                         std::uint64_t size) {
  if (!text.starts_with("random:") && !text.starts_with('@'))
    return parse_ranges(option, text, size);
  if (!data::is_subset(text)) {
    throw ConfigError(
        fmt::format("--{}: expected random:N, random:N:SEED or @FILE, got '{}'", option, text));
  }
  try {
    const data::SampleSet chosen = data::choose_subset(text, size, "the file");
    Ids ids;
    for (std::uint64_t i = 0; i < chosen.size(); ++i) ids.push_back(chosen[i]);
    return ids;
  } catch (const ConfigError& error) {
    throw error_of_option(option, "subset", error);
  }
}

std::size_t chosen_label_field(const Arguments& arguments, const data::BetonReader& reader) {
  return data::label_field(reader, arguments.text("label-field"));
}

std::optional<Ids> choose_samples(const Arguments& arguments, const data::BetonReader& reader) {
  std::optional<Ids> selected;
  const auto intersect = [&selected](Ids fit) {
    if (!selected) {
      selected = std::move(fit);
      return;
    }
    Ids both;
    std::ranges::set_intersection(*selected, fit, std::back_inserter(both));
    selected = std::move(both);
  };
  if (arguments.has("samples"))
    intersect(parse_samples("samples", arguments.text("samples"), reader.size()));
  if (arguments.has("classes")) intersect(ids_of_classes(arguments, reader));
  if (arguments.has("where")) intersect(ids_of_expression(arguments.text("where"), reader));
  if (selected && selected->empty())
    throw DataError(fmt::format(
        "{}: expected at least one sample that matches --samples, --classes and --where, got none",
        reader.path().string()));
  return selected;
}

std::vector<std::uint64_t> choose_samples_or_all(const Arguments& arguments,
                                                 const data::BetonReader& reader) {
  if (auto selected = choose_samples(arguments, reader)) return *std::move(selected);
  Ids all(reader.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace precast::tools
