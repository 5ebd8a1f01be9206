#include "data/sources/table_column.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <span>

#include "data/beton/format.h"
#include "data/sources/class_files.h"
#include "framework/core/error.h"
#include "framework/core/lower_case.h"
#include "framework/core/parse_number.h"

namespace precast::data {
namespace {

template <typename Number>
std::optional<Number> parse_printed(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9')
    return std::nullopt;
  return parse_number<Number>(text);
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return text == "-0" ? std::nullopt : parse_printed<std::int64_t>(text);
}

std::optional<double> parse_float(std::string_view text) {
  if (text.find('(') != std::string_view::npos) return std::nullopt;
  if (text.find_first_not_of("0123456789", text.starts_with('-') ? 1 : 0) ==
      std::string_view::npos) {
    const auto number = parse_printed<std::int64_t>(text);
    if (!number || *number > kMaxExactInteger || *number < -kMaxExactInteger) return std::nullopt;
  }
  return parse_printed<double>(text);
}

void TableColumn::add(const std::string& cell, CellType cell_type,
                      const std::optional<NumberList>& list) {
  add_list(list);
  all_numbers_ = all_numbers_ && (cell_type == CellType::number || cell_type == CellType::cell);
  const bool is_text = cell_type == CellType::text || cell_type == CellType::cell;
  all_texts_ = all_texts_ && is_text;
  all_integers_ = all_integers_ && all_numbers_ && parse_integer(cell).has_value();
  all_floats_ = all_floats_ && all_numbers_ && parse_float(cell).has_value();
  if (is_text && is_image_name(cell))
    ++image_names_;
  else if (image_names_ == rows_)
    first_other_ = rows_;
  ++rows_;
}

bool TableColumn::choose(const std::string& chosen) {
  if (chosen != "float") {
    chosen_ = chosen;
    return true;
  }
  all_integers_ = false;
  if (list_) list_->all_integers = false;
  return kind() == "float" || kind() == "ndarray";
}

std::string TableColumn::kind() const {
  if (!chosen_.empty()) return chosen_;
  if (all_integers_) return "int";
  if (all_floats_) return "float";
  if (image_names_ == rows_) return "image";
  if (all_numbers_ || all_texts_) return "bytes";
  return array() ? "ndarray" : "json";
}

std::optional<std::size_t> TableColumn::first_missing_image() const {
  if (!chosen_.empty() || image_names_ == rows_ || image_names_ < rows_ - image_names_)
    return std::nullopt;
  return first_other_;
}

void TableColumn::add_list(const std::optional<NumberList>& list) {
  if (list_ && list)
    all_lists_ = all_lists_ && list_->merge(*list);
  else
    all_lists_ = all_lists_ && list && rows_ == 0;
  if (!list_) list_ = list;
}

std::vector<std::string> field_names(const std::vector<std::string>& columns,
                                     const std::string& where) {
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    std::string name = column.substr(0, kFieldNameBytes);
    const bool printable = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
    if (name.empty() || !printable) {
      const char* hint = !name.empty() ? "Rename it"
                         : names.empty()
                             ? "Name it, or save the table without its index (pandas: index=False)"
                             : "Name the column or remove it";
      throw DataError(
          fmt::format("{}: column {}: expected a name of printable ASCII characters, got '{}'. {}",
                      where, names.size() + 1, column, hint));
    }
    if (const auto same = std::ranges::find(names, name); same != names.end()) {
      throw DataError(fmt::format(
          "{}: expected column names whose first {} bytes differ, got '{}' and '{}'. "
          "Rename one of them",
          where, kFieldNameBytes, columns[static_cast<std::size_t>(same - names.begin())], column));
    }
    names.push_back(std::move(name));
  }
  return names;
}

void check_image_columns(const std::vector<std::string>& names,
                         const std::vector<TableColumn>& columns, const std::string& class_column,
                         const std::string& where) {
  const auto classes = find_column(class_column, names);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto row = columns[i].first_missing_image();
    if (!row || classes == i) continue;
    throw DataError(fmt::format(
        "{0}: row {1}: expected the name of an image in column '{2}', as in most rows, got none. "
        "Fill it in, or, if the column contains no images, store its values with --field-kind "
        "{2}={3}",
        where, *row + 1, names[i], columns[i].kind()));
  }
}

std::optional<std::size_t> find_column(const std::string& name,
                                       const std::vector<std::string>& names) {
  const auto at = std::ranges::find_if(names, [&](const std::string& column) {
    return name == column || name == column.substr(0, kFieldNameBytes);
  });
  if (at == names.end()) return std::nullopt;
  return static_cast<std::size_t>(at - names.begin());
}

std::optional<std::size_t> label_column(const std::vector<std::string>& names,
                                        const std::vector<TableColumn>& columns) {
  constexpr std::string_view kUsual[] = {"label", "labels", "class", "target", "category"};
  constexpr std::string_view kOthers[] = {"classes", "class_id", "targets"};
  for (const std::span<const std::string_view> known :
       {std::span<const std::string_view>(kUsual), std::span<const std::string_view>(kOthers)}) {
    std::optional<std::size_t> texts;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (std::ranges::find(known, lower_case(names[i])) == known.end()) continue;
      if (columns[i].kind() == "int") return i;
      if (!texts && columns[i].has_texts()) texts = i;
    }
    if (texts) return texts;
  }
  return std::nullopt;
}

std::optional<std::string> find_value_in_header(const std::vector<std::string>& names,
                                                const std::vector<TableColumn>& columns) {
  std::vector<double> numbers;
  std::string first;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string kind = columns[i].kind();
    if (kind == "image" && is_image_name(names[i])) return names[i];
    if (kind != "int" && kind != "float") continue;
    const std::optional<double> number = parse_float(names[i]);
    // A column may well be called inf or nan.
    if (!number || !std::isfinite(*number)) continue;
    if (numbers.empty()) first = names[i];
    numbers.push_back(*number);
  }
  const bool ascends = numbers.size() > 1 &&
                       std::ranges::adjacent_find(numbers, std::greater_equal{}) == numbers.end();
  const bool only_zero = columns.size() == 1 && first == "0";
  if (numbers.empty() || ascends || only_zero) return std::nullopt;
  return first;
}

}  // namespace precast::data
