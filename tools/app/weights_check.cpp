#include "tools/app/weights_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "data/beton/file_info.h"
#include "framework/core/archive/weight_names.h"
#include "framework/core/error.h"
#include "framework/core/log.h"
#include "models/detail/blurred_layers.h"
#include "models/resnet.h"
#include "tools/app/normalization.h"
#include "tools/app/recipe_outputs.h"
#include "tools/cli/averages_warning.h"

namespace precast::tools {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kMaxShownLayers = 3;

/// The options of the architecture that the plan sets to values other than their defaults.
std::map<std::string, std::string> non_default_params(const ModelRegistry& models,
                                                      const ModelSpec& spec) {
  const auto part = models.create(spec.arch);
  Schema schema;
  part->options(schema);
  const nlohmann::ordered_json defaults = schema.values();
  Diagnostics diagnostics;
  schema.apply(spec.params, diagnostics, "model.params");
  diagnostics.throw_if_errors();
  const nlohmann::ordered_json values = schema.values();
  std::map<std::string, std::string> params;
  for (const auto& [name, value] : values.items()) {
    if (value != defaults.at(name)) params.emplace(name, value.dump());
  }
  return params;
}

/// The transforms of the first images that the network reads.
/// @param data null: the dataset is unknown
const data::ImagePipeline& eval_image_pipeline(const Recipe& recipe,
                                               const data::BetonReader* data) {
  const data::Pipeline& pipeline = recipe.val_pipeline;
  if (const auto* const input = find_input(pipeline, recipe.config, data)) return input->image;
  // No output is known to be an image. Every output that may be an image has the standard
  // transforms.
  const auto any = std::ranges::find(pipeline.outputs, data::OutputSpec::Content::any,
                                     &data::OutputSpec::content);
  return any == pipeline.outputs.end() ? pipeline.images : any->image;
}

std::string bool_text(bool value) {
  return value ? "true" : "false";
}

/// `KEY: A in the file, B here`.
std::string difference_text(std::string_view key, std::string_view there, std::string_view here) {
  return fmt::format("{}: {} in the file, {} here", key, there, here);
}

void compare_params(const WeightsSpec& there, const WeightsSpec& here, Lines& lines) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  const std::string default_text = "the default";
  for (const auto& [name, value] : there.params) values[name] = {value, default_text};
  for (const auto& [name, value] : here.params) {
    values.try_emplace(name, default_text, value).first->second.second = value;
  }
  const bool resnet = is_built_in(here.arch);
  for (const auto& [name, both] : values) {
    if (resnet && !models::ResNetOptions::affects_evaluation(name)) continue;
    if (both.first != both.second)
      lines.push_back(difference_text("model.params." + name, both.first, both.second));
  }
}

std::string first_layers(const Lines& layers) {
  const std::size_t shown = std::min(layers.size(), kMaxShownLayers);
  return fmt::format("{}{}",
                     fmt::join(layers.begin(), layers.begin() + static_cast<long>(shown), ", "),
                     shown < layers.size() ? ", ..." : "");
}

/// Lists the layers that are blurred only in the file or only here, and filters with different
/// values.
/// @param layers the layers with a filter in the file.
void compare_filters(const WeightsFile& file, const Lines& layers, const WeightsSpec& here,
                     Lines& lines) {
  if (layers.empty()) return;
  const std::set<std::string> there(layers.begin(), layers.end());
  for (const std::string& layer : there) {
    if (!here.blurred.contains(layer))
      lines.push_back(difference_text(layer + ".blur_filter", "a filter", "none"));
    else if (!is_blur_filter(*file.find(layer + ".blur_filter")))
      lines.push_back(
          difference_text(layer + ".blur_filter", "other values", "[1, 2, 1] x [1, 2, 1] / 16"));
  }
  for (const auto& [layer, channels] : here.blurred) {
    if (!there.contains(layer))
      lines.push_back(difference_text(layer + ".blur_filter", "none", "a filter"));
  }
}

/// Compares what determines the function of the network: architecture, its options that have an
/// effect in evaluation, BlurPool.
Lines compare_networks(const WeightsFile& file, const std::optional<WeightsSpec>& spec,
                       const WeightsSpec& here) {
  Lines lines;
  const Lines filters = filtered_layers(file.records(), spec);
  if (spec && spec->arch != here.arch) {
    // The options of different architectures cannot be compared.
    lines.push_back(difference_text("model.arch", spec->arch, here.arch));
  } else if (spec) {
    compare_params(*spec, here, lines);
  }
  if (spec && spec->in_channels != here.in_channels)
    lines.push_back(difference_text("model.in_channels", std::to_string(spec->in_channels),
                                    std::to_string(here.in_channels)));
  const bool blurpool = !filters.empty() || (spec && spec->blurpool);
  if (blurpool != here.blurpool && (spec || blurpool)) {
    lines.push_back(difference_text("blurpool", bool_text(blurpool), bool_text(here.blurpool)));
    if (!filters.empty())
      lines.back() += fmt::format(" (blur_filter of {})", first_layers(filters));
  } else if (blurpool && (!spec || spec->arch == here.arch)) {
    compare_filters(file, filters, here, lines);
  }
  if (!spec && !blurpool && here.blurpool) {
    lines.push_back(difference_text("blurpool", "unknown (neither a model spec nor blur_filter)",
                                    bool_text(true)));
  }
  return lines;
}

/// Compares what determines the meaning of inputs and outputs.
/// @param images whether the network reads images.
Lines compare_data(const WeightsSpec& there, const WeightsSpec& here, WeightsUse use, bool images) {
  Lines lines;
  const bool same_count = there.num_classes == here.num_classes;
  if (!same_count && use == WeightsUse::evaluate) {
    lines.push_back(difference_text("classes", std::to_string(there.num_classes),
                                    std::to_string(here.num_classes)));
  }
  const auto &names_there = there.class_names, &names_here = here.class_names;
  // In training, a last layer for another number of classes is replaced, so the old names of the
  // classes do not matter.
  const bool compares = same_count || use == WeightsUse::evaluate;
  if (compares && !names_there.empty() && !names_here.empty() && names_there != names_here) {
    const auto [a, b] = std::ranges::mismatch(names_there, names_here);
    lines.push_back(difference_text(fmt::format("name of class {}", a - names_there.begin()),
                                    a == names_there.end() ? "none" : fmt::format("'{}'", *a),
                                    b == names_here.end() ? "none" : fmt::format("'{}'", *b)));
  }
  const data::NormalizeOptions file = {there.mean, there.std}, recipe = {here.mean, here.std};
  if (images && !is_same_normalization(file, recipe)) {
    lines.push_back(
        difference_text("normalisation", normalization_text(file), normalization_text(recipe)));
  }
  return lines;
}

}  // namespace

WeightsSpec describe_weights(const Recipe& recipe, const TrainPlan& plan,
                             const Registries& registries, const Model& model,
                             const data::BetonReader* data, WeightsUse use) {
  WeightsSpec spec;
  spec.arch = plan.model.arch;
  spec.params = non_default_params(registries.models, plan.model);
  spec.blurpool = plan.model.blurpool;
  if (spec.blurpool) spec.blurred = models::blurred_layers(model);
  spec.num_classes = plan.model.num_classes;
  spec.in_channels = plan.model.in_channels;
  if (data != nullptr && recipe.targets != TargetKind::none) {
    const bool trains = use == WeightsUse::train;
    spec.class_names =
        label_names(*data, trains ? recipe.train_pipeline : recipe.val_pipeline, recipe.config);
  }
  if (has_image_input(recipe.val_pipeline, recipe.config, data)) {
    const data::NormalizeOptions images = normalization_of(eval_image_pipeline(recipe, data));
    spec.mean = images.mean;
    spec.std = images.std;
  }
  spec.resolution_px = recipe.config.validation.resolution;
  return spec;
}

void check_weights(const WeightsFile& file, const WeightsSpec& expected, WeightsUse use,
                   bool strict, bool images) {
  const std::optional<WeightsSpec> spec = spec_of(file);
  Lines network = compare_networks(file, spec, expected);
  Lines data = spec ? compare_data(*spec, expected, use, images) : Lines{};
  Lines& differences = network;
  if (use == WeightsUse::evaluate) {
    differences.insert(differences.end(), data.begin(), data.end());
    data.clear();
  }
  if (!differences.empty() && strict) {
    throw CheckpointError(fmt::format(
        "{}: expected weights for the network and data of the recipe, got other "
        "weights:\n  {}\nGive the recipe that the weights were trained with, or load them with "
        "--model.weights_check=off",
        file.path().string(), fmt::join(differences, "\n  ")));
  }
  differences.insert(differences.end(), data.begin(), data.end());
  if (!differences.empty()) {
    log_warning("{}: the weights were trained for a different network or different data:\n  {}",
                file.path().string(), fmt::join(differences, "\n  "));
  }
}

void check_class_count(const Recipe& recipe, const data::BetonReader& data) {
  const auto& model = recipe.config.model;
  if (recipe.targets != TargetKind::class_index || model.num_classes > 0) return;
  const std::size_t named = label_names(data, recipe.val_pipeline, recipe.config).size();
  if (named == 0) return;
  const WeightsFile file = load_weights(model.weights);
  const std::optional<WeightsSpec> spec = spec_of(file);
  const std::int64_t classes = classes_of_weights(file);
  if (classes == 0 || classes == static_cast<std::int64_t>(named)) return;
  if (spec && !spec->class_names.empty()) return;
  const std::string message =
      fmt::format("{}: expected weights for {} classes, as {} has, got weights for {}",
                  model.weights, named, data.path().string(), classes);
  if (model.weights_check == "on") {
    throw CheckpointError(
        message +
        ". Set data.val_dataset to a dataset with the classes of the weights, or load them "
        "with --model.weights_check=off");
  }
  log_warning("{}", message);
}

void warn_of_unnamed_labels(const Recipe& recipe, const data::BetonReader& data,
                            std::int64_t classes) {
  const std::string& path = recipe.config.model.weights;
  if (path.empty() || recipe.targets != TargetKind::class_index) return;
  const auto labels = find_labels(data, recipe.val_pipeline, recipe.config);
  if (!labels || !data::class_names_of(data, labels->field).empty()) return;
  const auto spec = read_weights_spec(path);
  if (!spec || spec->class_names.empty() || spec->num_classes != classes) return;
  log_warning(
      "{}: the labels were not compared with the class names of {}, because the dataset has no "
      "class names. If its labels mean other classes, the accuracy is wrong",
      data.path().string(), path);
}

void warn_of_averages(const WeightsFile& file) {
  if (const std::string warning = averages_warning(file); !warning.empty())
    log_warning("{}", warning);
}

std::int64_t classes_of_weights(const WeightsFile& file) {
  if (const auto spec = spec_of(file)) return spec->num_classes;
  const TensorRecord* bias = file.find("fc.bias");
  return bias != nullptr && bias->shape.size() == 1 ? bias->shape[0] : 0;
}

std::int64_t classes_of_weights(const std::string& path) {
  return classes_of_weights(load_weights(path));
}

}  // namespace precast::tools
