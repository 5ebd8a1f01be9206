#pragma once

#include <string>
#include <vector>

#include "tools/experiments/reproduce/row_result.h"
#include "tools/experiments/reproduce/table.h"

namespace precast::tools {

/// The table as an HTML page. For each model, a chart shows accuracy over the minutes of training
/// and evaluation, for precast and for the published figures. Below are the table, the accuracy
/// after each epoch, differences, other systems and sources. The page is self-contained and has no
/// scripts.
[[nodiscard]] std::string table_page(const ResultTable& table,
                                     const std::vector<RowResult>& results);

}  // namespace precast::tools
