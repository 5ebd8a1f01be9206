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

std::string field_of(const data::Output& output, const data::BetonReader& reader) {
  if (data::is<data::SampleIdOutput>(output)) return std::string(data::kSampleId);
  return reader.fields()[output.field].name;
}

OutputChoice choose(const data::BetonReader& reader, const std::vector<data::Output>& outputs,
                    const data::FieldChoice& choice) {
  const data::BatchFields fields = data::find_fields(reader, outputs, choice);
  OutputChoice chosen;
  for (const std::size_t index : fields.inputs)
    chosen.inputs.push_back(field_of(fields.outputs[index], reader));
  for (const std::size_t index : fields.targets)
    chosen.targets.push_back(field_of(fields.outputs[index], reader));
  return chosen;
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
  const auto output_of = [&](const std::string& field) {
    return std::ranges::find(outputs, field,
                             [&](const data::Output& output) { return field_of(output, dataset); });
  };
  std::vector<std::string> warnings;
  // Without the key, one output is chosen.
  const auto compare = [&](std::string_view key, const std::vector<std::string>& before,
                           const std::vector<std::string>& now) {
    if (before.size() != 1 || now.size() != 1 || before == now) return;
    const auto same = output_of(before[0]);
    if (same == outputs.end()) {
      warnings.push_back(
          fmt::format("{}: expected the field '{}' in {}, as in {}, got none. '{}' "
                      "is used instead",
                      key, before[0], file, trained_on, now[0]));
      return;
    }
    recipe.refuse(key, fmt::format("missing. The first suitable field is '{}' in {}, but '{}' in "
                                   "{}. Set --{}=[{}] to read the same field",
                                   before[0], trained_on, now[0], file, key, same->name));
  };
  if (recipe.config.data.inputs.empty()) compare("data.inputs", trained.inputs, found.inputs);
  if (recipe.config.data.targets.empty()) compare("data.targets", trained.targets, found.targets);
  return warnings;
}

}  // namespace precast::tools
