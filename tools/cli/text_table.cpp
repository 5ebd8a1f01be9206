#include "tools/cli/text_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "framework/core/error.h"

namespace precast::tools {

void print_text_table(const std::vector<std::vector<std::string>>& rows) {
  require(!rows.empty(), "a table has a header row");
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    require(row.size() == widths.size(), "all rows of a table have the same length");
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      fmt::print("{}{:>{}}", i == 0 ? "" : "   ", row[i], widths[i]);
    fmt::print("\n");
  }
}

}  // namespace precast::tools
