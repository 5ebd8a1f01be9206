#include "tools/app/class_figures.h"

#include <string>
#include <vector>

#include "tools/app/recipe_outputs.h"

namespace precast::tools {

using nlohmann::ordered_json;

ordered_json eval_figures(const engine::EvalResult& eval) {
  ordered_json figures = ordered_json::object();
  if (eval.is_classification) figures = {{"top_1", eval.top_1()}, {"top_5", eval.top_5()}};
  figures["val_loss"] = eval.loss;
  for (const auto& [name, value] : eval.metrics) figures[name] = value;
  return figures;
}

ordered_json class_figures(const engine::EvalResult& eval, const data::BetonReader& dataset,
                           const Recipe& recipe) {
  ordered_json figures = ordered_json::object();
  if (eval.classes.empty()) return figures;
  const std::vector<std::string> names = label_names(dataset, recipe.val_pipeline, recipe.config);
  if (names.size() == eval.classes.size()) figures["names"] = names;
  figures["images"] = ordered_json::array();
  figures["top_1_correct"] = ordered_json::array();
  for (const engine::ClassCount& count : eval.classes) {
    figures["images"].push_back(count.samples);
    figures["top_1_correct"].push_back(count.top_1_correct);
  }
  return figures;
}

}  // namespace precast::tools
