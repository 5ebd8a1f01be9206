#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "data/beton/reader.h"
#include "data/transforms/pipeline.h"

namespace precast::tools {

/// The path, or the paths of a list, as human-readable text.
[[nodiscard]] std::string file_text(const nlohmann::ordered_json& file);

/// Describes a dataset for --dry-run: file (a list if there are several), samples, bytes, names of
/// classes and, if it has an image field, the smallest, mean and largest width and height of the
/// first one, in pixels.
[[nodiscard]] nlohmann::ordered_json dataset_summary(const data::BetonReader& reader);

/// Whether any image of the dataset is stored as a JPEG.
[[nodiscard]] bool has_jpegs(const data::BetonReader& reader);

/// Describes a pipeline for --dry-run: the steps as the recipe gives them (or the standard steps)
/// and, if images are normalised, mean and std.
/// @param written the value of `pipeline.train` or `pipeline.val`; null or empty: the standard
/// pipeline.
[[nodiscard]] nlohmann::ordered_json pipeline_summary(const data::Pipeline& pipeline,
                                                      const nlohmann::ordered_json& written,
                                                      bool train);

/// Print the results of dataset_summary() and pipeline_summary() as text, one line each. @{
void print_dataset(const std::string& name, const nlohmann::ordered_json& dataset);
void print_pipeline(const std::string& name, const nlohmann::ordered_json& pipeline);
/// @}

}  // namespace precast::tools
