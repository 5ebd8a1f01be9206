#include "data/sources/delimited.h"

#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {

void delimited(Input input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const auto rows = data::parse_delimited(text, ',', "input");
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
  require(letters <= text.size(), "cells are made of the text");
  require(data::parse_delimited(again, ',', "round trip") == rows,
          "rows survive being quoted and read again");
}

}  // namespace precast::fuzz
