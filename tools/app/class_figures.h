#pragma once

#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "framework/engine/evaluator.h"
#include "tools/app/recipe.h"

namespace precast::tools {

/// The results of an evaluation: top_1 and top_5 (for losses with class labels), val_loss and the
/// metrics. Their names are the same in summary.json, `eval --json` and the file of --result-json.
[[nodiscard]] nlohmann::ordered_json eval_figures(const engine::EvalResult& eval);

/// The per-class counts of an evaluation, as lists in the order of the classes: `{"names": [...],
/// "images": [...], "top_1_correct": [...]}`. `names` exists only if the dataset has a name for
/// each class. Empty if nothing was counted per class.
/// @param dataset the evaluated dataset.
[[nodiscard]] nlohmann::ordered_json class_figures(const engine::EvalResult& eval,
                                                   const data::BetonReader& dataset,
                                                   const Recipe& recipe);

}  // namespace precast::tools
