#include "data/sources/delimited.h"

#include <fmt/core.h>

#include <utility>

#include "framework/core/error.h"

namespace precast::data {
namespace {

class DelimitedReader {
 public:
  DelimitedReader(std::string_view text, char delimiter, const std::string& place)
      : text_(text), delimiter_(delimiter), place_(place) {}

  [[nodiscard]] bool at_end() const { return text_.empty(); }

  /// The cells of the next line; none for an empty one.
  std::vector<std::string> row() {
    std::vector<std::string> cells;
    if (take_line_end()) return cells;
    cells.push_back(cell());
    while (take(delimiter_)) cells.push_back(cell());
    if (!at_end() && !take_line_end()) {
      throw DataError(
          fmt::format("{}: line {}: expected a delimiter behind a closing quote", place_, line_));
    }
    return cells;
  }

 private:
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_line_end() {
    if (!text_.starts_with('\n') && !text_.starts_with("\r\n")) return false;
    text_.remove_prefix(text_.front() == '\r' ? 2 : 1);
    ++line_;
    return true;
  }

  std::string cell() {
    if (take('"')) return quoted_cell();
    std::string cell;
    while (!at_end() && text_.front() != delimiter_ && text_.front() != '\n' &&
           !text_.starts_with("\r\n")) {
      cell += text_.front();
      text_.remove_prefix(1);
    }
    return cell;
  }

  std::string quoted_cell() {
    const std::size_t first_line = line_;
    std::string cell;
    while (!at_end()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      // A quote inside is written twice.
      if (c == '"' && !take('"')) return cell;
      if (c == '\n') ++line_;
      cell += c;
    }
    throw DataError(fmt::format("{}: line {}: expected a closing quote, got the end of the file",
                                place_, first_line));
  }

  std::string_view text_;
  const char delimiter_;
  const std::string& place_;
  std::size_t line_ = 1;
};

}  // namespace

std::vector<std::vector<std::string>> parse_delimited(std::string_view text, char delimiter,
                                                      const std::string& place) {
  DelimitedReader reader(text, delimiter, place);
  std::vector<std::vector<std::string>> rows;
  while (!reader.at_end()) {
    std::vector<std::string> row = reader.row();
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace precast::data
