#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"
#include "framework/core/config/schema.h"

namespace precast::data {

struct PRECAST_API TableOptions {
  /// Columns whose values are kept as the text in the file.
  std::vector<std::string> texts;

  void options(Schema& schema);
};

/// A list of samples: .csv and .tsv with a line of column names (RFC 4180: cells may be quoted), or
/// .jsonl with an object a line. A column is a field. Its kind follows from all its values and
/// loses nothing of them: int where all are whole numbers as a program prints them (`007` and `-0`
/// are not), float where all are numbers and no whole one would be rounded (others become the
/// nearest double), image where all are names of image files (relative to the list's folder), and
/// bytes else. In .jsonl texts are never numbers, and a column with an object, a list, a boolean or
/// null, or with texts beside numbers, is json. Columns in `options.texts` are bytes: a cell as it
/// is there; in .jsonl a text without its quotes, or the document of any other value. Column names
/// are cut off at 16 bytes, which notes() count (`cut_column_names`).
///
/// The file stays mapped and must not change meanwhile; opening reads it once. In memory are 8
/// bytes a row, and the row that sample() reads.
/// @throws IoError; DataError naming file, line and column
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_table(const std::filesystem::path& path,
                                                             const TableOptions& options = {});
[[nodiscard]] bool is_table(const std::filesystem::path& path);

}  // namespace precast::data
