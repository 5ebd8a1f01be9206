#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/experiments/reproduce/table.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// A row's training time by the model of `precast bench step --model-cost`. Only training steps:
/// without evaluation, and as if data were always ready.
struct ProjectedRow {
  const TableRow* row = nullptr;
  /// GPUs that train together.
  int gpus = 1;
  /// With separate kernels, and with fused ones.
  double minutes = 0;
  double fused_minutes = 0;
  /// `[{image_size, epochs, images_per_second, fused_images_per_second}]`, per GPU.
  nlohmann::ordered_json sizes{};
};

/// @param cost the JSON of `bench step --model-cost` for one card.
[[nodiscard]] ProjectedRow project_row(const TableRow& row, std::int64_t train_images,
                                       const nlohmann::ordered_json& cost);

/// Runs `program bench step RECIPE --model-cost` for each row. Details of each row are written to
/// `<folder>/projection/<row>.json`. @param settings given to all rows, applied after the row's
/// own. @throws ConfigError if the command fails for a row, or the table does not state the number
/// of training images.
[[nodiscard]] std::vector<ProjectedRow> project_rows(const ResultTable& table,
                                                     const std::vector<const TableRow*>& rows,
                                                     const std::vector<Setting>& settings,
                                                     const std::string& card,
                                                     const std::filesystem::path& program,
                                                     const std::filesystem::path& folder);

/// The projection as Markdown; the text says that it is a projection.
[[nodiscard]] std::string projection_markdown(const ResultTable& table, const std::string& card,
                                              const std::vector<ProjectedRow>& rows);
[[nodiscard]] nlohmann::ordered_json projection_json(const ResultTable& table,
                                                     const std::string& card,
                                                     const std::vector<ProjectedRow>& rows);

}  // namespace precast::tools
