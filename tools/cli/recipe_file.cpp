#include "tools/cli/recipe_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "framework/core/config/value.h"

namespace precast::tools {
namespace {

/// What a run notes in addition to its keys.
constexpr const char* kNotes[] = {"plugins.xxh3"};

/// A key with a dot at the top; a recipe's own file has sections there.
bool is_flat(const ConfigNode& top) {
  return std::ranges::any_of(top.entries, [](const ConfigNode::Entry& entry) {
    return entry.key.find('.') != std::string::npos;
  });
}

/// The entry of that name, which is added if there is none.
ConfigNode::Entry& entry_of(ConfigNode& map, const ConfigNode::Entry& like,
                            const std::string& name) {
  const auto found = std::ranges::find(map.entries, name, &ConfigNode::Entry::key);
  if (found != map.entries.end()) return *found;
  ConfigNode::Entry& added = map.entries.emplace_back();
  added.key = name;
  added.key_origin = like.key_origin;
  added.value.kind = ConfigNode::Kind::map;
  added.value.origin = like.key_origin;
  return added;
}

ConfigNode sections_of(ConfigNode flat) {
  ConfigNode sections;
  sections.kind = ConfigNode::Kind::map;
  sections.origin = flat.origin;
  for (ConfigNode::Entry& entry : flat.entries) {
    if (std::ranges::find(kNotes, entry.key) != std::end(kNotes)) continue;
    const std::size_t dot = entry.key.find('.');
    if (dot == std::string::npos) {
      sections.entries.push_back(std::move(entry));
      continue;
    }
    ConfigNode& section = entry_of(sections, entry, entry.key.substr(0, dot)).value;
    entry.key.erase(0, dot + 1);
    section.entries.push_back(std::move(entry));
  }
  return sections;
}

}  // namespace

RecipeFile read_recipe_file(const std::filesystem::path& path, Diagnostics& diagnostics) {
  ConfigNode top = parse_yaml_file(path, diagnostics);
  if (!is_flat(top)) return {std::move(top), /*saved=*/false};
  return {sections_of(std::move(top)), /*saved=*/true};
}

void drop_defaults(ConfigNode& sections, const nlohmann::ordered_json& defaults) {
  for (ConfigNode::Entry& section : sections.entries) {
    std::erase_if(section.value.entries, [&](const ConfigNode::Entry& entry) {
      const auto value = defaults.find(section.key + "." + entry.key);
      return value != defaults.end() && to_json(entry.value) == *value;
    });
  }
}

}  // namespace precast::tools
