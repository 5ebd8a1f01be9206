#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/beton/reader.h"
#include "framework/engine/evaluator.h"

namespace precast::tools {

/// The figures of an evaluation: top_1 and top_5 if it has them, val_loss, and the metrics. Their
/// names are the same in summary.json, `eval --json` and the file of --result-json.
[[nodiscard]] nlohmann::ordered_json eval_figures(const engine::EvalResult& eval);

/// The counts of an evaluation per class, as lists in the order of the classes: `{"names": [...],
/// "images": [...], "top_1_correct": [...]}`. `names` exists only if the dataset has a name for
/// each class. Empty if nothing was counted per class. @param targets data.targets, whose first
/// field is the label; if empty, the label is the file's first integer field.
[[nodiscard]] nlohmann::ordered_json class_figures(const engine::EvalResult& eval,
                                                   const data::BetonReader& dataset,
                                                   const std::vector<std::string>& targets);

}  // namespace precast::tools
