#pragma once

#include <string>
#include <vector>

#include "tools/experiments/reproduce/row_result.h"
#include "tools/experiments/reproduce/table.h"

namespace precast::tools {

/// The table as a page: for each model the frontier of accuracy over time, ours next to the
/// published one; the table; accuracy after each epoch; differences; sources. Self-contained, no
/// script.
[[nodiscard]] std::string table_page(const ResultTable& table,
                                     const std::vector<RowResult>& results);

}  // namespace precast::tools
