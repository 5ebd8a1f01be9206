#include "tools/plugins/pipeline_options.h"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>

#include "framework/core/config/value.h"
#include "framework/core/error.h"
#include "tools/cli/recipe_file.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {

namespace po = boost::program_options;

constexpr std::int64_t kMaxImagePx = 8192;

void add_pipeline_options(po::options_description& options, const std::string& used) {
  const std::string config_help = fmt::format("recipe to read; only its {} are used", used);
  options.add_options()("pipeline", po::value<std::string>()->value_name("YAML"),
                        "transforms as in a recipe; such as '[random_resized_crop: {scale: [0.25, "
                        "1]}, horizontal_flip]'")(
      "config-file", po::value<std::string>()->value_name("FILE"), config_help.c_str());
}

namespace {

/// Reads model.in_channels, if the recipe sets it. Reports values other than 1 and 3.
void read_channels(const ConfigNode& recipe, int& channels, Diagnostics& diagnostics) {
  const ConfigNode* const model = recipe.find("model");
  const ConfigNode* const node = model == nullptr ? nullptr : model->find("in_channels");
  if (node == nullptr) return;
  if (node->scalar == "1" || node->scalar == "3") {
    channels = node->scalar == "1" ? 1 : 3;
  } else {
    diagnostics.error(node->origin, "model.in_channels",
                      fmt::format("expected 1 or 3, got {}", node->text()));
  }
}

/// A value of the recipe, and its key.
struct RecipeValue {
  std::string key;
  /// null: the recipe does not set it.
  const ConfigNode* node = nullptr;
};

RecipeValue find_value(const ConfigNode* section, const std::string& section_key,
                       const std::string& name) {
  return {section_key + "." + name, section == nullptr ? nullptr : section->find(name)};
}

/// The side of the images in the last epochs of training. An option of the method
/// progressive_resize, if the recipe lists it; a recipe with resolution.* as well is not valid.
RecipeValue find_train_size(const ConfigNode& recipe) {
  const ConfigNode* const methods = recipe.find("methods");
  for (std::size_t i = 0; methods != nullptr && i < methods->items.size(); ++i) {
    const ConfigNode& method = methods->items[i];
    const ConfigNode* const options = method.find("progressive_resize");
    if (options != nullptr || method.scalar == "progressive_resize")
      return find_value(options, fmt::format("methods[{}].progressive_resize", i), "max_res");
  }
  return find_value(recipe.find("resolution"), "resolution", "max_res");
}

}  // namespace

std::optional<data::Pipeline> read_pipeline(const Arguments& arguments, bool train) {
  if (arguments.has("pipeline") && arguments.has("config-file"))
    throw ConfigError("expected --pipeline or --config-file, got both");
  if (!arguments.has("pipeline") && !arguments.has("config-file")) return std::nullopt;
  data::DataParts parts = make_data_parts();
  add_data_plugins(open_plugins(arguments), parts);
  Diagnostics diagnostics;
  ConfigNode node;
  std::string key = "--pipeline";
  int channels = 0;
  if (arguments.has("pipeline")) {
    node = parse_override(arguments.text("pipeline"), {"--pipeline", 0, 0}, diagnostics);
  } else {
    const std::string part = train ? "train" : "val";
    const ConfigNode recipe = read_recipe_file(arguments.text("config-file"), diagnostics).sections;
    add_data_plugins(open_plugins(recipe, {}, diagnostics), parts);
    const ConfigNode* const section = recipe.find("pipeline");
    const ConfigNode* const found = section == nullptr ? nullptr : section->find(part);
    if (found != nullptr) node = *found;
    key = "pipeline." + part;
    read_channels(recipe, channels, diagnostics);
  }
  data::Pipeline pipeline = data::parse_pipeline(
      node, key, parts.pipeline,
      train ? data::standard_train_pipeline() : data::standard_val_pipeline(), diagnostics);
  if (channels > 0) data::set_channels(pipeline, channels, {}, diagnostics);
  diagnostics.throw_if_errors();
  return pipeline;
}

std::optional<std::int64_t> read_image_size(const Arguments& arguments, bool train) {
  if (!arguments.has("config-file")) return std::nullopt;
  Diagnostics diagnostics;
  const ConfigNode recipe = read_recipe_file(arguments.text("config-file"), diagnostics).sections;
  const auto [key, node] = train
                               ? find_train_size(recipe)
                               : find_value(recipe.find("validation"), "validation", "resolution");
  std::int64_t size_px = train ? kDefaultTrainPx : kDefaultEvalPx;
  if (node != nullptr && !(read_value(*node, &size_px) && size_px >= 1 && size_px <= kMaxImagePx)) {
    diagnostics.error(
        node->origin, key,
        fmt::format("expected an integer from 1 to {}, got {}", kMaxImagePx, node->text()));
  }
  diagnostics.throw_if_errors();
  return size_px;
}

}  // namespace precast::tools
