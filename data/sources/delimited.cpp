#include "data/sources/delimited.h"

#include <fmt/core.h>

#include <utility>

#include "framework/core/error.h"

namespace precast::data {

DelimitedReader::DelimitedReader(std::string_view text, char delimiter, std::string where)
    : text_(text), delimiter_(delimiter), where_(std::move(where)) {}

bool DelimitedReader::next(std::vector<std::string>& cells) {
  while (take_line_end()) {
  }
  row_at_ = at_;
  if (at_end()) return false;
  std::size_t count = 0;
  do {
    if (count == cells.size()) cells.emplace_back();
    read_cell(cells[count++]);
  } while (take(delimiter_));
  cells.resize(count);
  if (!at_end() && !take_line_end()) {
    throw DataError(
        fmt::format("{}: line {}: expected a delimiter or the end of the line after a closing "
                    "quote, got another character",
                    where_, line_));
  }
  return true;
}

bool DelimitedReader::take(char c) {
  if (at_end() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool DelimitedReader::take_line_end() {
  const std::string_view rest = text_.substr(at_, 2);
  if (!rest.starts_with('\n') && rest != "\r\n") return false;
  at_ += rest.front() == '\r' ? 2 : 1;
  ++line_;
  return true;
}

void DelimitedReader::read_cell(std::string& cell) {
  if (take('"')) return read_quoted(cell);
  const std::size_t begin = at_;
  while (!at_end() && text_[at_] != delimiter_ && text_[at_] != '\n' &&
         (text_[at_] != '\r' || text_.substr(at_, 2) != "\r\n"))
    ++at_;
  cell.assign(text_.substr(begin, at_ - begin));
}

void DelimitedReader::read_quoted(std::string& cell) {
  const std::size_t first_line = line_;
  cell.clear();
  while (!at_end()) {
    const char c = text_[at_++];
    // A quote inside is written twice.
    if (c == '"' && !take('"')) return;
    if (c == '\n') ++line_;
    cell += c;
  }
  throw DataError(fmt::format("{}: line {}: expected a closing quote, got the end of the file",
                              where_, first_line));
}

}  // namespace precast::data
