#include "tools/app/output_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "data/loader/outputs.h"
#include "data/torch/batch_views.h"
#include "tools/app/recipe_outputs.h"
#include "tools/app/session.h"

namespace precast::tools {
namespace {

std::vector<std::string> names_of(const std::vector<data::Output>& outputs,
                                  const std::vector<std::size_t>& indices) {
  std::vector<std::string> names;
  for (const std::size_t index : indices) names.push_back(outputs[index].name);
  return names;
}

bool has_outputs(const std::vector<data::Output>& outputs, const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [&](const std::string& name) {
    return std::ranges::find(outputs, name, &data::Output::name) != outputs.end();
  });
}

OutputChoice choose(const data::BetonReader& reader, std::vector<data::Output> outputs,
                    const data::FieldChoice& choice) {
  const data::BatchFields fields = data::find_fields(reader, std::move(outputs), choice);
  return {names_of(fields.outputs, fields.inputs), names_of(fields.outputs, fields.targets)};
}

}  // namespace

OutputChoice choose_outputs(const data::BetonReader& reader, const Recipe& recipe,
                            const data::Pipeline& pipeline) {
  return choose(reader, data::resolve_outputs(reader, pipeline, /*normalize=*/true),
                field_choice(recipe));
}

std::vector<std::string> compare_outputs(const OutputChoice& trained, const std::string& trained_on,
                                         const data::BetonReader& dataset, const Recipe& recipe,
                                         bool predicts) {
  data::FieldChoice choice = field_choice(recipe);
  data::Pipeline pipeline = recipe.val_pipeline;
  if (predicts) {
    choice.targets.clear();
    choice.needs_target = false;
    pipeline = prediction_pipeline(pipeline, recipe.config, dataset);
  }
  const auto outputs = data::resolve_outputs(dataset, pipeline, /*normalize=*/true);
  const OutputChoice found = choose(dataset, outputs, choice);
  const std::string file = dataset.path().string();
  std::vector<std::string> warnings;
  const auto compare = [&](std::string_view key, const std::vector<std::string>& before,
                           const std::vector<std::string>& now) {
    if (before.empty() || now.empty() || before == now) return;
    if (has_outputs(outputs, before)) {
      recipe.refuse(key, fmt::format("missing. The first suitable outputs are [{}] in {}, but [{}] "
                                     "in {}. Set --{}=[{}] to read the same ones",
                                     fmt::join(before, ", "), trained_on, fmt::join(now, ", "),
                                     file, key, fmt::join(before, ", ")));
    }
    warnings.push_back(
        fmt::format("{}: expected [{}] in {}, as in {}, got [{}], which is used "
                    "instead",
                    key, fmt::join(before, ", "), file, trained_on, fmt::join(now, ", ")));
  };
  if (recipe.config.data.inputs.empty()) compare("data.inputs", trained.inputs, found.inputs);
  if (recipe.config.data.targets.empty()) compare("data.targets", trained.targets, found.targets);
  return warnings;
}

}  // namespace precast::tools
