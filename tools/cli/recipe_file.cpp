#include "tools/cli/recipe_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/config/value.h"
#include "framework/core/log.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;
using Kind = ConfigNode::Kind;

/// Keys that given_keys() leaves out of a params.json. They belong to the run that recorded it, and
/// a training run that reads the file as a recipe is a new run.
constexpr std::string_view kPerRunKeys[] = {"logging.run_id", "checkpoint.resume"};
constexpr const char* kSmoothingKey = "training.label_smoothing";
/// If this key is given, the default of kSmoothingKey does not apply.
constexpr const char* kLossSmoothingKey = "loss.label_smoothing";

bool has_dot(const ConfigNode::Entry& entry) {
  return entry.key.find('.') != std::string::npos;
}

/// Whether this is a params.json or a copy of one: its name ends in .json, and its top level has
/// keys with dots and no sections. In a recipe, a key with a dot is a mistake. It must not make the
/// recipe count as a recorded configuration, because the other keys would then not be checked.
bool is_recorded(const std::filesystem::path& path, const ConfigNode& top) {
  return path.extension() == ".json" && std::ranges::any_of(top.entries, has_dot) &&
         std::ranges::all_of(top.entries, [](const ConfigNode::Entry& entry) {
           return has_dot(entry) || entry.value.kind != Kind::map;
         });
}

/// Reports the keys with dots at the top level of a recipe.
void refuse_dots(const ConfigNode& top, Diagnostics& diagnostics) {
  for (const auto& [key, origin, value] : top.entries) {
    const std::size_t dot = key.find('.');
    if (dot == std::string::npos) continue;
    diagnostics.error(origin, key,
                      fmt::format("expected the key in its section, got it at the top level. Write "
                                  "{}: {{{}: {}}}. The name of a copy of a run's params.json "
                                  "must end in .json",
                                  key.substr(0, dot), key.substr(dot + 1),
                                  value.kind == Kind::scalar ? value.scalar : "..."));
  }
}

bool is_true(const ConfigNode* value) {
  bool yes = false;
  return value != nullptr && read_value(*value, &yes) && yes;
}

/// Whether the method's keys in `params` enable the method with exactly the recorded options.
bool follows_from_keys(const KeyedMethod& method, const ConfigNode& options,
                       const ConfigNode& params) {
  if (!method.selector.empty() && !is_true(params.find(method.selector))) return false;
  if (options.entries.size() != method.options.size()) return false;
  return std::ranges::all_of(method.options, [&](const auto& option) {
    const ConfigNode* recorded = options.find(option.first);
    const ConfigNode* key = params.find(option.second);
    return recorded != nullptr && key != nullptr && to_json(*recorded) == to_json(*key);
  });
}

void erase_key(ConfigNode& params, const std::string& key) {
  std::erase_if(params.entries, [&](const ConfigNode::Entry& entry) { return entry.key == key; });
}

/// For each method of the list that has keys, removes either the method or its keys, so that it is
/// not enabled twice. Methods that keys select are applied first, in the order of keyed_methods().
/// So only methods that come first in the list, in this order, are left to their keys.
void remove_implied_methods(ConfigNode& params) {
  const auto list = std::ranges::find(params.entries, "methods", &ConfigNode::Entry::key);
  if (list == params.entries.end() || list->value.kind != Kind::list) return;
  std::vector<ConfigNode> remaining;
  std::vector<std::string> replaced, found;
  auto next = keyed_methods().begin();  // the first method that keys may still select here
  for (const ConfigNode& item : list->value.items) {
    if (item.entries.size() != 1) continue;
    const auto& [name, origin, options] = item.entries[0];
    found.push_back(name);
    const auto keyed = std::ranges::find(next, keyed_methods().end(), name, &KeyedMethod::name);
    if (keyed != keyed_methods().end() && follows_from_keys(*keyed, options, params)) {
      next = std::next(keyed);
      continue;
    }
    next = keyed_methods().end();
    remaining.push_back(item);
    const auto listed = std::ranges::find(keyed_methods(), name, &KeyedMethod::name);
    if (listed == keyed_methods().end()) continue;
    const std::vector<std::string> keys = listed->keys();
    replaced.insert(replaced.end(), keys.begin(), keys.end());
  }
  list->value.items = std::move(remaining);
  for (const std::string& key : replaced) erase_key(params, key);
  // If label_smoothing is missing although its key selects it, the recipe gave
  // loss.label_smoothing, or its loss has no such option.
  double smoothing = 0;
  const ConfigNode* key = params.find(kSmoothingKey);
  const bool is_requested = key != nullptr && read_value(*key, &smoothing) && smoothing > 0;
  if (is_requested && std::ranges::find(found, "label_smoothing") == found.end())
    erase_key(params, kSmoothingKey);
}

/// Converts `{"lr.lr": 0.5}` to `{lr: {lr: 0.5}}`.
ConfigNode in_sections(const ConfigNode& params) {
  ConfigNode recipe = params;
  recipe.entries.clear();
  for (const ConfigNode::Entry& entry : params.entries) {
    const std::size_t dot = entry.key.find('.');
    if (dot == std::string::npos) {
      recipe.entries.push_back(entry);
      continue;
    }
    const std::string name = entry.key.substr(0, dot);
    auto section = std::ranges::find(recipe.entries, name, &ConfigNode::Entry::key);
    // Skips `plugins.xxh3`, because `plugins` is not a section but a list.
    if (section != recipe.entries.end() && section->value.kind != Kind::map) continue;
    if (section == recipe.entries.end()) {
      ConfigNode map;
      map.kind = Kind::map;
      map.origin = entry.key_origin;
      recipe.entries.push_back({name, entry.key_origin, map});
      section = std::prev(recipe.entries.end());
    }
    section->value.entries.push_back({entry.key.substr(dot + 1), entry.key_origin, entry.value});
  }
  return recipe;
}

/// Whether the user gave loss.label_smoothing, even if its value equals the default: true if
/// nothing else in the record explains why training.label_smoothing does not apply.
bool gives_loss_smoothing(const ConfigNode& config) {
  const ConfigNode* const training = config.find("training");
  if (training != nullptr && training->find("label_smoothing") != nullptr) return false;
  const ConfigNode* const methods = config.find("methods");
  return methods == nullptr || std::ranges::none_of(methods->items, [](const ConfigNode& item) {
           return item.find("label_smoothing") != nullptr;
         });
}

bool is_same(const ConfigNode& node, const ordered_json& value) {
  if (value.is_boolean()) {
    bool truth = false;
    return read_value(node, &truth) && truth == value.get<bool>();
  }
  if (value.is_string())
    return node.kind == Kind::scalar && node.scalar == value.get<std::string>();
  return to_json(node) == value;
}

}  // namespace

std::vector<std::string> KeyedMethod::keys() const {
  std::vector<std::string> all;
  if (!selector.empty()) all.push_back(selector);
  for (const auto& [option, key] : options) all.push_back(key);
  return all;
}

const std::vector<KeyedMethod>& keyed_methods() {
  static const std::vector<KeyedMethod> methods = {
      {"blurpool", "training.use_blurpool", {}},
      {"channels_last", "training.channels_last", {}},
      {"progressive_resize",
       "",
       {{"min_res", "resolution.min_res"},
        {"max_res", "resolution.max_res"},
        {"start_ramp", "resolution.start_ramp"},
        {"end_ramp", "resolution.end_ramp"}}},
      {"label_smoothing", "", {{"smoothing", kSmoothingKey}}}};
  return methods;
}

RecipeFile read_recipe_file(const std::filesystem::path& path, Diagnostics& diagnostics) {
  RecipeFile file;
  file.sections.kind = Kind::map;
  if (path.empty()) return file;
  file.sections = parse_yaml_file(path, diagnostics);
  file.recorded = is_recorded(path, file.sections);
  if (file.recorded) {
    remove_implied_methods(file.sections);
  } else {
    refuse_dots(file.sections, diagnostics);
  }
  file.sections = in_sections(file.sections);
  return file;
}

ConfigNode given_keys(const RecipeFile& file, const Schema& schema) {
  const ConfigNode& config = file.sections;
  if (!file.recorded) return config;
  ordered_json defaults = schema.values();
  if (gives_loss_smoothing(config)) defaults.erase(kLossSmoothingKey);
  std::vector<std::string> unknown;
  ConfigNode given = config;
  for (ConfigNode::Entry& section : given.entries) {
    if (schema.contains(section.key)) continue;
    std::erase_if(section.value.entries, [&](const ConfigNode::Entry& entry) {
      const std::string name = section.key + "." + entry.key;
      if (!schema.contains(name)) unknown.push_back(name);
      // Earlier versions recorded the options of every part, chosen or not.
      if (!schema.reads(name)) return true;
      if (std::ranges::find(kPerRunKeys, name) != std::end(kPerRunKeys)) return true;
      const auto value = defaults.find(name);
      return value != defaults.end() && is_same(entry.value, *value);
    });
  }
  // Empty sections are removed, because this version may not know them.
  std::erase_if(given.entries, [&](const ConfigNode::Entry& section) {
    return !schema.contains(section.key) && section.value.entries.empty();
  });
  if (!unknown.empty()) {
    log_warning("{}: ignored keys that this version does not have: {}", config.origin.source,
                fmt::join(unknown, ", "));
  }
  return given;
}

}  // namespace precast::tools
