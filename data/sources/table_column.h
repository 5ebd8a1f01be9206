#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/dtype.h"
#include "data/sources/number_list.h"

namespace precast::data {

/// The type of a value in a table. Cells of delimited text have no type.
enum class CellForm { cell, number, text, other };

/// An integer as programs print it. Digits with a leading zero are a code, not a number (`007`,
/// `01234`). Returns nothing for -0, because an integer would lose the sign.
[[nodiscard]] std::optional<std::int64_t> parse_whole(std::string_view text);
/// As parse_whole(), for a number. Returns nothing for what a double cannot represent: an integer
/// that would be rounded, or a NaN with a payload.
[[nodiscard]] std::optional<double> parse_float(std::string_view text);

/// The common properties of the values of a column, which determine the kind of its field.
class TableColumn {
 public:
  void add(const std::string& cell, CellForm form, const std::optional<NumberList>& list);
  /// Replaces the kind of the values by bytes, json or float (for lists, an ndarray of float64).
  /// @return whether they fit.
  [[nodiscard]] bool choose(const std::string& chosen);
  /// Whether all values are strings, but neither all numbers nor all names of images, and no kind
  /// was chosen.
  [[nodiscard]] bool has_texts() const { return chosen_.empty() && texts_ && kind() == "bytes"; }
  [[nodiscard]] std::string kind() const;
  /// The format of the arrays if all values are lists of numbers with the same shape.
  [[nodiscard]] std::optional<ArrayFormat> array() const {
    return lists_ && list_ ? list_->format() : std::nullopt;
  }

 private:
  void add_list(const std::optional<NumberList>& list);

  /// bytes or json; empty: the kind of the values.
  std::string chosen_;
  bool has_rows_ = false;
  bool lists_ = true;
  std::optional<NumberList> list_;
  bool numbers_ = true;
  bool texts_ = true;
  bool whole_ = true;
  bool floats_ = true;
  bool images_ = true;
};

/// The name of each column's field: the first kFieldNameBytes of the column's. @param place names
/// the table in messages. @throws DataError naming the column if its name is empty or not printable
/// ASCII, or if two of the names are equal.
[[nodiscard]] std::vector<std::string> field_names(const std::vector<std::string>& columns,
                                                   const std::string& place);

/// The column with this name, entire or truncated to kFieldNameBytes.
[[nodiscard]] std::optional<std::size_t> find_column(const std::string& name,
                                                     const std::vector<std::string>& names);

/// The column of labels: the first column of ints that is called label, labels, class, target or
/// category, else the first column of texts with such a name.
[[nodiscard]] std::optional<std::size_t> label_column(const std::vector<std::string>& names,
                                                      const std::vector<TableColumn>& columns);

/// The first of the columns' names that is a value of its column, as in a table without names: the
/// name of an image, or a number in a column of numbers. Numbers that ascend are names, such as
/// those that pandas writes for an array (0,1,2), years or wavelengths; so is the 0 of a single
/// column.
[[nodiscard]] std::optional<std::string> value_in_names(const std::vector<std::string>& names,
                                                        const std::vector<TableColumn>& columns);

}  // namespace precast::data
