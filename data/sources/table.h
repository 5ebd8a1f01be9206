#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"
#include "framework/core/config/schema.h"

namespace precast::data {

struct PRECAST_API TableOptions {
  /// Columns whose text is stored unchanged.
  std::vector<std::string> texts = {};
  /// Columns whose values are stored as JSON documents.
  std::vector<std::string> documents = {};
  /// Columns of numbers, or of lists of numbers, that are stored as floats even if all are
  /// integers, so that the type does not depend on the rows of a split.
  std::vector<std::string> floats = {};
  /// The column that contains class names; empty: the first text column that label_column() finds,
  /// unless an int column contains the labels. An int column contains class names only if `classes`
  /// is given.
  std::string class_column = {};
  /// The file with all classes (read_classes()); empty: the classes are the strings in the column.
  std::string classes = {};

  void options(Schema& schema);
};

/// Opens a list of samples: .csv and .tsv with a line of column names (RFC 4180: cells may be
/// quoted), or .jsonl with one object per line. Each column becomes a field. The kind of the field
/// depends on all values of the column, so that no information is lost: int if all are integers as
/// a program prints them (`007` and `-0` are not), float if all are numbers and no integer would be
/// rounded (other numbers become the nearest double), image if all are names of image files
/// (relative to the list's folder), else bytes. In .jsonl strings are never numbers. A column of
/// lists of numbers that all have the same shape is an ndarray: int64 if all numbers are integers,
/// float64 if no integer would be rounded. A column with any other list, with an object, a boolean
/// or null, or with both strings and numbers, is json. Columns in `options.texts` are bytes: in
/// .csv and .tsv the cell unchanged; in .jsonl a string without its quotes, or the JSON text of any
/// other value. Columns in `options.documents` are json: in .jsonl the JSON text of any value; in
/// .csv and .tsv the cell, which must be a JSON document. Columns in `options.floats` are float or,
/// for lists, ndarray of float64. Column names are truncated to 16 bytes (`options` may contain
/// entire and truncated names); notes() counts the truncated ones (`cut_column_names`).
///
/// The strings of one column, `options.class_column`, are class names. The field of this column is
/// an int: the position of the string among the sorted strings of the column, or the position of
/// the class in `options.classes`; class_names() are these strings. Without `options.classes`,
/// integers are the labels themselves. With it, they are class names too, so that a split in which
/// all class names consist of digits has the same labels as the other splits.
///
/// Fields have the order of their columns, except that the field of the labels (the class names,
/// else the int column of label_column()) precedes all other int fields, because training reads the
/// first one.
///
/// The file is read on opening, and stays mapped, so it must not change while the source is in use.
/// Memory use is 8 bytes per row, plus the class names and the row that sample() reads.
/// @throws IoError; DataError naming file, line and column, also if the first line of a .csv or
/// .tsv looks like a sample (the name of an image, or a number that names a column of numbers), or
/// if the name of a column is empty or not printable ASCII, or if two names have the same first 16
/// bytes, or if at least half of the values of a column, but not all, are names of image files,
/// unless the options name the column;
/// ConfigError if `options` name a column that does not exist, or whose values do not fit
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_table(const std::filesystem::path& path,
                                                             const TableOptions& options = {});
[[nodiscard]] bool is_table(const std::filesystem::path& path);

}  // namespace precast::data
