#pragma once

#include <string>
#include <vector>

#include "tools/experiments/reproduce/row_result.h"
#include "tools/experiments/reproduce/table.h"

namespace precast::tools {

/// The table as an HTML page: for each model, the best accuracy by training time, precast's next to
/// the published one; then the table, the accuracy after each epoch, differences and sources.
/// Self-contained, without scripts.
[[nodiscard]] std::string table_page(const ResultTable& table,
                                     const std::vector<RowResult>& results);

}  // namespace precast::tools
