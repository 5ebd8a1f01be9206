#pragma once

#include <filesystem>
#include <memory>

#include "data/sources/source.h"

namespace precast::data {

/// A list of samples: .csv and .tsv with a line of column names (RFC 4180: cells may be quoted), or
/// .jsonl with an object a line. A column is a field. Its kind follows from all its values: whole
/// numbers are int, other numbers float, names of image files (relative to the list's folder)
/// image, and all else bytes; in .jsonl arrays and objects are json. Column names are cut off at 16
/// bytes, which notes() count (`cut_column_names`). @throws IoError; DataError naming file, line
/// and column
[[nodiscard]] PRECAST_API std::unique_ptr<Source> open_table(const std::filesystem::path& path);
[[nodiscard]] bool is_table(const std::filesystem::path& path);

}  // namespace precast::data
