#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/experiments/reproduce/table.h"
#include "tools/experiments/trial/trial.h"

namespace precast::tools {

/// The training time of a row, computed with the cost model of `precast bench step --model-cost`.
/// It contains only training steps, without evaluation, and assumes that data is always ready.
struct ProjectedRow {
  const TableRow* row = nullptr;
  /// Number of GPUs that train together.
  int gpus = 1;
  /// Minutes of training with separate kernels, and with fused kernels.
  double minutes = 0;
  double fused_minutes = 0;
  /// `[{image_size, epochs, images_per_second, fused_images_per_second, uncounted}]`, per GPU.
  nlohmann::ordered_json sizes{};
};

/// Computes the training time of a row. @param train_images the size of the training set, before
/// data.subset and data.repeats of the row. @param cost the JSON of `bench step --model-cost` for
/// one card. @throws ConfigError if the row has a data.filter, because the number of samples that
/// it selects is not known, or an invalid data.subset, such as one beyond `train_images` samples.
[[nodiscard]] ProjectedRow project_row(const TableRow& row, std::int64_t train_images,
                                       const nlohmann::ordered_json& cost);

/// Runs `program bench step RECIPE --model-cost` for each row, and writes the details of each row
/// to `<folder>/projection/<row>.json`. @param settings settings for all rows, applied after a
/// row's own. @throws ConfigError if the command fails for a row, `card` is not the name of one
/// card, or the table does not give the number of training images.
[[nodiscard]] std::vector<ProjectedRow> project_rows(const ResultTable& table,
                                                     const std::vector<const TableRow*>& rows,
                                                     const std::vector<Setting>& settings,
                                                     const std::string& card,
                                                     const std::filesystem::path& program,
                                                     const std::filesystem::path& folder);

/// Returns the projection as Markdown or as JSON, labelled as a projection. @{
[[nodiscard]] std::string projection_markdown(const ResultTable& table, const std::string& card,
                                              const std::vector<ProjectedRow>& rows);
[[nodiscard]] nlohmann::ordered_json projection_json(const ResultTable& table,
                                                     const std::string& card,
                                                     const std::vector<ProjectedRow>& rows);
/// @}

}  // namespace precast::tools
