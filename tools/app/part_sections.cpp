#include "tools/app/part_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "framework/core/error.h"

namespace precast::tools {

void PartSections::mount(Schema& schema, const PartSection& section, const Candidate& own,
                         const std::vector<Candidate>& others, bool known) {
  for (const std::string& option : own.options.names()) {
    const auto renamed = section.renamed.find(option);
    const std::string key =
        renamed == section.renamed.end() ? section.prefix + option : renamed->second;
    if (schema.contains(key)) {
      throw ConfigError(fmt::format(
          "{}: {}: expected options whose keys are not yet in use, got '{}' (key {}). Rename it",
          section.selector, own.name, option, key));
    }
    schema.add_renamed(key, own.options, option);
    if (key != section.prefix + option) schema.add_alias(section.prefix + option, key);
    keys_[section.prefix].emplace_back(option, key);
  }
  std::map<std::string, std::vector<std::string>> readers;
  for (const Candidate& other : others) {
    for (const std::string& option : other.options.names()) {
      // Skips options that the chosen part has too, and other keys of the recipe.
      if (!schema.contains(section.prefix + option)) readers[option].push_back(other.name);
    }
  }
  if (!known) {
    // Only the unknown name is reported. The options of all parts are accepted unchecked.
    auto value = std::make_shared<ConfigNode>();
    owned_.push_back(value);
    for (const auto& [option, names] : readers) {
      schema.add(section.prefix + option, value.get(), "");
      const auto renamed = section.renamed.find(option);
      if (renamed != section.renamed.end()) schema.add(renamed->second, value.get(), "");
    }
    return;
  }
  for (const auto& [option, names] : readers) {
    const std::string reason =
        fmt::format("it has no effect with {}: {}, only with {}: {}", section.selector, own.name,
                    section.selector, fmt::join(names, ", "));
    const auto add = [&](const std::string& key) {
      if (section.published.contains(option)) {
        // Not an error here. A grid rejects the key if it has no effect in any trial, unless only
        // the recipe's file contains it (tools/experiments/trial/check.h).
        schema.add_dead(key, "ignored, as in ffcv-imagenet: " + reason);
      } else {
        schema.add_unread(key, reason);
      }
    };
    add(section.prefix + option);
    if (const auto renamed = section.renamed.find(option); renamed != section.renamed.end())
      add(renamed->second);
  }
}

PartSpec PartSections::spec(const Schema& schema, const PartSection& section,
                            const std::string& chosen) const {
  PartSpec spec{.name = chosen, .key = section.prefix.substr(0, section.prefix.size() - 1)};
  const auto keys = keys_.find(section.prefix);
  if (keys == keys_.end()) return spec;
  spec.options.kind = ConfigNode::Kind::map;
  for (const auto& [option, key] : keys->second) {
    if (!schema.given(key)) continue;
    const ConfigNode& value = schema.given_value(key);
    spec.options.entries.push_back({option, value.origin, value});
  }
  return spec;
}

std::string peek_value(const ConfigNode& file, const std::vector<Override>& overrides,
                       std::string_view key, std::string otherwise) {
  for (auto override = overrides.rbegin(); override != overrides.rend(); ++override) {
    if (override->key == key) return override->value.scalar;
  }
  const ConfigNode* node = &file;
  for (std::string_view rest = key; node != nullptr && !rest.empty();) {
    const std::size_t dot = rest.find('.');
    node = node->find(rest.substr(0, dot));
    rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
  }
  const bool scalar = node != nullptr && node->kind == ConfigNode::Kind::scalar;
  return scalar ? node->scalar : otherwise;
}

}  // namespace precast::tools
