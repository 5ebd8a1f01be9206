#include "data/sources/delimited.h"

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Reads all rows, and checks that each of the first 64 is the same if reading starts at its
/// position.
Rows rows_of(std::string_view text) {
  data::DelimitedReader reader(text, ',', "input");
  Rows rows;
  std::vector<std::string> row;
  std::vector<std::string> again;
  constexpr std::size_t kMaxChecked = 64;
  while (reader.next(row)) {
    if (rows.size() < kMaxChecked) {
      require(data::DelimitedReader(text.substr(reader.offset()), ',', "row").next(again) &&
                  again == row,
              "a row is the same if reading starts at its position");
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

void delimited(Input input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const Rows rows = rows_of(text);
  std::size_t letters = 0;
  std::string again;
  for (const std::vector<std::string>& row : rows) {
    require(!row.empty(), "a row has a cell");
    for (const std::string& cell : row) {
      letters += cell.size();
      again += &cell == row.data() ? '"' : ',';
      if (&cell != row.data()) again += '"';
      for (const char letter : cell) again.append(letter == '"' ? 2 : 1, letter);
      again += '"';
    }
    again += '\n';
  }
  require(letters <= text.size(), "cells have no more letters than the text");
  require(rows_of(again) == rows, "rows survive being quoted and read again");
}

}  // namespace precast::fuzz
