#include "tools/reproduce/job_file.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/rng.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

constexpr const char* kRecipe = "recipe";

ordered_json facts_of(const Trial& trial) {
  const std::vector<std::byte> recipe = read_file(trial.recipe);
  const std::string text(reinterpret_cast<const char*>(recipe.data()), recipe.size());
  ordered_json facts = {{kRecipe, fmt::format("{:016x}", derived_seed(0, text))}};
  for (const Setting& setting : trial.settings) {
    if (changes_results(setting)) facts[setting.key] = setting.value;
  }
  return facts;
}

/// What differs, in words; empty if nothing does.
std::string change_between(const ordered_json& before, const ordered_json& now) {
  const auto text = [](const ordered_json& facts, const std::string& key) {
    return facts.contains(key) ? facts.at(key).get<std::string>() : "the recipe's value";
  };
  ordered_json keys = before;
  keys.update(now);
  for (const auto& [key, value] : keys.items()) {
    if (text(before, key) == text(now, key)) continue;
    if (key == kRecipe) return "its recipe was another one";
    return fmt::format("{} was {}, is {}", key, text(before, key), text(now, key));
  }
  return {};
}

}  // namespace

void claim_folder(const std::filesystem::path& folder, const std::vector<Trial>& trials) {
  const std::filesystem::path path = folder / "reproduce.json";
  ordered_json known = ordered_json::object();
  if (std::ifstream file(path); file) {
    const auto read = ordered_json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!read.is_object())
      throw ConfigError(
          fmt::format("{}: expected a JSON object. Give another --folder", path.string()));
    known = read;
  }
  for (const Trial& trial : trials) {
    ordered_json facts = facts_of(trial);
    if (known.contains(trial.id)) {
      if (const std::string change = change_between(known.at(trial.id), facts); !change.empty()) {
        throw ConfigError(fmt::format("{}: {} was begun with other keys: {}. Give another --folder",
                                      folder.string(), trial.id, change));
      }
    } else {
      known[trial.id] = std::move(facts);
    }
  }
  write_file(path, known.dump(2) + "\n");
}

}  // namespace precast::tools
