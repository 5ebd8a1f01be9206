#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/dtype.h"
#include "data/sources/number_list.h"

namespace precast::data {

/// The type of a value in a table. `cell`: a cell of delimited text, which has no type.
enum class CellType { cell, number, text, other };

/// An integer as programs print it. Digits with a leading zero are a code, not a number (`007`,
/// `01234`). Returns nothing for -0, because an integer would lose the sign.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);
/// Like parse_integer(), for any number. -0 is accepted. Returns nothing for an integer below
/// -kMaxExactInteger or above kMaxExactInteger, because a double may round it, and for a NaN with a
/// payload, such as nan(1).
[[nodiscard]] std::optional<double> parse_float(std::string_view text);

/// The common properties of the values of a column, which determine the kind of its field.
class TableColumn {
 public:
  void add(const std::string& cell, CellType cell_type, const std::optional<NumberList>& list);
  /// Sets the kind of the field to `chosen`: bytes, json or float (for lists, an ndarray of
  /// float64).
  /// @return whether the values can be stored as this kind.
  [[nodiscard]] bool choose(const std::string& chosen);
  /// Whether all values are strings, not all are numbers, not all are names of images, and no kind
  /// was chosen.
  [[nodiscard]] bool has_texts() const {
    return chosen_.empty() && all_texts_ && kind() == "bytes";
  }
  [[nodiscard]] std::string kind() const;
  /// The number of the first value that is not the name of an image, counted from 0, if at least
  /// half of the values, but not all, are such names, and no kind was chosen. Such a column is
  /// probably one of images with an error, and would not be stored as images.
  [[nodiscard]] std::optional<std::size_t> first_missing_image() const;
  /// The format of the arrays if all values are lists of numbers with the same shape; nothing
  /// otherwise, or if float64 could round an integer.
  [[nodiscard]] std::optional<ArrayFormat> array() const {
    return all_lists_ && list_ ? list_->format() : std::nullopt;
  }

 private:
  void add_list(const std::optional<NumberList>& list);

  /// bytes or json; empty: the values determine the kind.
  std::string chosen_;
  bool all_lists_ = true;
  std::optional<NumberList> list_;
  bool all_numbers_ = true;
  bool all_texts_ = true;
  bool all_integers_ = true;
  bool all_floats_ = true;
  std::size_t rows_ = 0;
  /// Values that are names of images.
  std::size_t image_names_ = 0;
  /// The number of the first value that is not such a name.
  std::size_t first_other_ = 0;
};

/// The name of each column's field: the first kFieldNameBytes bytes of the column's name. @param
/// where names the table in messages. @throws DataError naming the column if its name is empty or
/// not printable ASCII, or if two fields would have the same name.
[[nodiscard]] std::vector<std::string> field_names(const std::vector<std::string>& columns,
                                                   const std::string& where);

/// @param class_column the column whose texts are class names, whatever they look like; may be
/// empty. @param where names the table in messages. @throws DataError naming the first other column
/// for which first_missing_image() returns a row, and that row.
void check_image_columns(const std::vector<std::string>& names,
                         const std::vector<TableColumn>& columns, const std::string& class_column,
                         const std::string& where);

/// The column with this name, entire or truncated to kFieldNameBytes.
[[nodiscard]] std::optional<std::size_t> find_column(const std::string& name,
                                                     const std::vector<std::string>& names);

/// The column of labels: the first column of ints that is called label, labels, class, target or
/// category, in upper or lower case, else the first text column with such a name; else a column
/// that is called classes, class_id or targets, chosen in the same way.
[[nodiscard]] std::optional<std::size_t> label_column(const std::vector<std::string>& names,
                                                      const std::vector<TableColumn>& columns);

/// The first column name that looks like a value of its column, as in a table without a line of
/// names: the name of an image, or a number in a column of numbers. Ascending numbers count as
/// names, such as those that pandas writes for an array (0,1,2), years or wavelengths; so does a 0
/// above the only column.
[[nodiscard]] std::optional<std::string> find_value_in_header(
    const std::vector<std::string>& names, const std::vector<TableColumn>& columns);

}  // namespace precast::data
