#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast::data {

/// Reads delimited text (RFC 4180) one row at a time. Cells in double quotes may contain
/// delimiters, line breaks and quotes, which are written twice. Lines end with LF or CRLF; empty
/// lines are skipped. Not thread-safe.
class PRECAST_API DelimitedReader {
 public:
  /// @param text  must outlive the reader. It may begin with any row.
  /// @param where names the text in messages. Line numbers in messages count from the beginning of
  /// `text`.
  DelimitedReader(std::string_view text, char delimiter, std::string where);

  /// Reads the next row. @param cells overwritten; their memory is reused. @return false at the
  /// end. @throws DataError if a quoted cell is not closed, naming the line where it begins, or if
  /// its closing quote is followed by other text, naming the line of that quote.
  bool next(std::vector<std::string>& cells);
  /// Offset in the text of the row that next() returned.
  [[nodiscard]] std::size_t offset() const { return row_at_; }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  bool take(char c);
  bool take_line_end();
  void read_cell(std::string& cell);
  void read_quoted(std::string& cell);

  std::string_view text_;
  char delimiter_;
  std::string where_;
  std::size_t at_ = 0;
  std::size_t row_at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace precast::data
