#include "tools/app/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "framework/api/model_spec.h"
#include "framework/core/config/options_query.h"
#include "tools/app/registries.h"
#include "tools/app/train_config.h"
#include "tools/plugins/parts_list.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Models read their options while they are made: they are asked instead of made.
ListedKind list_models(const ModelRegistry& models) {
  ListedKind all = list_parts(models);
  for (std::size_t i = 0; i < all.parts.size(); ++i) {
    const auto& entry = models.entries()[i];
    try {
      static_cast<void>(entry.factory(
          ModelSpec{.arch = entry.name, .num_classes = 1, .params = options_query()}));
    } catch (const OptionsAnswer& answer) {
      all.parts[i].option_lines = answer.help();
      all.parts[i].options = ordered_json::parse(answer.defaults());
    } catch (const std::exception&) {  // one that cannot be made is listed all the same
    }
  }
  return all;
}

/// Whether a line of help is for this part: `cosine, poly: ...` names those that read the key,
/// other keys are for all.
bool is_read_by(const std::string& help, const ListedPart& part, const ListedKind& all) {
  const std::size_t colon = help.find(": ");
  if (colon == std::string::npos) return true;
  std::istringstream names(help.substr(0, colon));
  bool found = false;
  for (std::string name; names >> name;) {
    if (name.ends_with(',')) name.pop_back();
    if (std::ranges::find(all.parts, name, &ListedPart::name) == all.parts.end()) return true;
    found = found || name == part.name;
  }
  return found;
}

/// Adds the recipe's keys that the parts of a kind are told.
/// @param keys or, with a dot at the end, their section
ListedKind with_recipe_keys(ListedKind all, const Schema& schema,
                            const std::vector<std::string>& keys) {
  const ordered_json defaults = schema.values();
  std::istringstream lines(schema.help("    "));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    const bool wanted = std::ranges::any_of(keys, [&](const std::string& k) {
      return k.ends_with('.') ? key.starts_with(k) && !key.ends_with("_type") : key == k;
    });
    if (!wanted) continue;
    std::string help;
    std::getline(words >> std::ws, help);
    for (ListedPart& part : all.parts) {
      if (!is_read_by(help, part, all)) continue;
      part.option_lines += line + "\n";
      part.options[key] = defaults.at(key);
    }
  }
  return all;
}

std::vector<ListedKind> all_kinds(const Registries& registries) {
  TrainConfig config;
  const Schema schema = make_train_schema(config, registries);
  std::vector<ListedKind> all = {
      list_models(registries.models), list_parts(registries.methods),
      with_recipe_keys(list_parts(registries.losses), schema, {"training.label_smoothing"}),
      with_recipe_keys(list_parts(registries.optimizers), schema,
                       {"training.momentum", "training.weight_decay", "optimizer."}),
      with_recipe_keys(list_parts(registries.schedules), schema, {"lr."})};
  for (ListedKind& kind : list_data_parts(registries)) all.push_back(std::move(kind));
  const auto orders = std::ranges::find(all, "orders", &ListedKind::kind);
  *orders = with_recipe_keys(std::move(*orders), schema,
                             {"data.shuffle_window_mb", "data.subset", "data.filter",
                              "data.weights", "data.weight_field", "data.repeats"});
  return all;
}

}  // namespace

int run_list(const std::vector<std::string>& args) {
  Arguments arguments = list_arguments();
  if (!arguments.parse(args)) return 0;
  Registries registries = make_registries();
  for (const PluginFile& file : open_plugins(arguments)) add_plugin(file, registries);
  print_parts(arguments, all_kinds(registries));
  return 0;
}

}  // namespace precast::tools
