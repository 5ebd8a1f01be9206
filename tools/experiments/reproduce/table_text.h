#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/experiments/reproduce/row_result.h"
#include "tools/experiments/reproduce/table.h"

namespace precast::tools {

inline constexpr const char* kNoFigure = "-";

/// Text from a table's file, escaped for a cell of a Markdown table.
[[nodiscard]] std::string markdown_cell(std::string_view text);

/// `0.7376 ± 0.0012` over several seeds, `0.7376` for one seed; `-` if there is no figure.
[[nodiscard]] std::string figure_text(const std::optional<MeanInterval>& figure, int digits);
/// `0.7376`; `-` if there is no figure.
[[nodiscard]] std::string figure_text(const std::optional<double>& figure, int digits);

/// Formats minutes like figure_text(), with one decimal place or, below one minute, with two
/// significant digits and at most four decimal places: `2.5`, `0.50`, `0.017`. @{
[[nodiscard]] std::string minutes_text(const std::optional<MeanInterval>& minutes);
[[nodiscard]] std::string minutes_text(const std::optional<double>& minutes);
/// @}

/// Says how the runs of a row differ from the published runs, based on the first run that has
/// started. There are up to three lines: hardware, number of training images, and keys that can
/// change results (except training.seed) and are not the row's own settings.
[[nodiscard]] std::vector<std::string> differences(const ResultTable& table,
                                                   const RowResult& result);

/// A line of differences(), and the rows to which it applies: their names, or `all rows` if at
/// least two rows have started and the line applies to all of these.
struct Difference {
  std::string rows;
  std::string line;
};
[[nodiscard]] std::vector<Difference> joined_differences(const ResultTable& table,
                                                         const std::vector<RowResult>& results);

/// The table as Markdown: for each row, precast's figures next to the first published ones; then
/// differences, other systems and sources.
[[nodiscard]] std::string table_markdown(const ResultTable& table,
                                         const std::vector<RowResult>& results);
/// The contents of table_markdown() and each seed's figures, as JSON.
[[nodiscard]] nlohmann::ordered_json table_json(const ResultTable& table,
                                                const std::vector<RowResult>& results);

}  // namespace precast::tools
