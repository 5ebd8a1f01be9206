#include "tools/cli/recipe_arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/suggest.h"
#include "tools/cli/help_text.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

bool is_key_name(std::string_view name) {
  if (name == "methods" || name == "plugins") return true;  // the keys outside a section
  return name.find('.') != std::string_view::npos && name.find('/') == std::string_view::npos &&
         !name.starts_with('-');
}

const char* positional_name(RecipeArguments::Positional positional) {
  switch (positional) {
    case RecipeArguments::Positional::recipe:
      return "CONFIG.yaml";
    case RecipeArguments::Positional::run_or_recipe:
      return "RUN|CONFIG.yaml";
    case RecipeArguments::Positional::recipe_or_dataset:
      break;
  }
  return "CONFIG.yaml|FILE.beton";
}

std::string positional_help(RecipeArguments::Positional positional) {
  std::string recipe = "recipe; if it is left out, the defaults and the keys given here apply";
  switch (positional) {
    case RecipeArguments::Positional::recipe:
      return recipe;
    case RecipeArguments::Positional::run_or_recipe:
      return "run folder, or one of its checkpoints or weights files; or a " + recipe;
    case RecipeArguments::Positional::recipe_or_dataset:
      break;
  }
  return "a .beton file or its URL, as in data.train_dataset; or a " + recipe;
}

/// Overrides that were given without `--`, and the sections of their keys.
using Words = std::vector<std::pair<std::string, std::string>>;

bool is_path(const std::string& word) {
  std::error_code unknown;
  return std::filesystem::exists(word, unknown);
}

std::vector<Override> take_overrides(std::vector<std::string>& args, Words& words) {
  const Origin origin{kCommandLine, 0, 0};
  std::vector<Override> overrides;
  std::vector<std::string> rest;
  Diagnostics diagnostics;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    const std::size_t dashes = arg.starts_with("--") ? 2 : 0;
    const std::size_t equals = arg.find('=');
    std::string name = arg.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    const bool is_word = dashes == 0;
    if (!is_key_name(name) || (is_word && (equals == std::string::npos || is_path(arg)))) {
      rest.push_back(arg);
      continue;
    }
    std::ranges::replace(name, '-', '_');
    if (is_word) words.emplace_back(arg, name.substr(0, name.find('.')));
    if (equals != std::string::npos) {
      overrides.push_back({name, parse_override(arg.substr(equals + 1), origin, diagnostics)});
    } else if (i + 1 == args.size()) {
      diagnostics.error(origin, "--" + name,
                        "expected a value after it, got the end of the command line");
    } else if (args[i + 1].starts_with("--")) {
      // The value is probably an empty variable of a shell.
      diagnostics.error(
          origin, "--" + name,
          fmt::format("expected a value after it, got the option {}. A value that begins with -- "
                      "is given as --{}=VALUE",
                      args[i + 1], name));
    } else {
      overrides.push_back({name, parse_override(args[++i], origin, diagnostics)});
    }
  }
  diagnostics.throw_if_errors();
  args = std::move(rest);
  return overrides;
}

/// @throws ConfigError for a word whose section no key has: it is probably the name of a file
void check_words(const Words& words, const std::vector<RecipeKey>& keys) {
  std::vector<std::string> sections = {"order"};  // the options of plug-ins' orders
  for (const RecipeKey& key : keys) {
    std::string section = key.section();
    if (std::ranges::find(sections, section) == sections.end())
      sections.push_back(std::move(section));
  }
  for (const auto& [word, section] : words) {
    if (std::ranges::find(sections, section) != sections.end()) continue;
    throw ConfigError(fmt::format(
        "command line: {}: expected a key in a section of a recipe, got the section '{}'. {} To "
        "name a file, write ./{}",
        word, section, suggest(section, sections), word));
  }
}

}  // namespace

std::vector<Override> take_overrides(std::vector<std::string>& args) {
  Words words;
  return take_overrides(args, words);
}

RecipeArguments::RecipeArguments(const std::string& command, std::string about,
                                 Positional positional)
    : name_(positional_name(positional)),
      positional_kind_(positional),
      arguments_(fmt::format("{} [{}]{} [--section.key=value ...] [options]", command, name_,
                             command == "predict" ? " [INPUT...]" : ""),
                 std::move(about)) {
  arguments_.optional_positional(name_, positional_help(positional));
  arguments_.options().add_options()("config-file", po::value<std::string>()->value_name("FILE"),
                                     "recipe to read; another way to give CONFIG.yaml")(
      "help-keys", "show all keys of a recipe, with types, ranges and defaults");
  arguments_.exit_codes({3, 4, 6, 129, 130, 143});
}

bool RecipeArguments::parse(const std::vector<std::string>& args, std::vector<RecipeKey> keys) {
  for (const std::string& arg : args) {
    if (arg != "--help-keys" && arg != "--help_keys") continue;
    fmt::print("{}", keys_text(keys, help_width()));
    return false;
  }
  std::vector<std::string> remaining = args;
  Words words;
  overrides_ = take_overrides(remaining, words);
  check_words(words, keys);
  arguments_.take_keys(std::move(keys));
  if (!arguments_.parse(remaining)) return false;
  if (names_dataset()) {
    Diagnostics diagnostics;
    const Origin origin{kCommandLine, 0, 0};
    overrides_.push_back(
        {"data.train_dataset", parse_override(arguments_.text(name_), origin, diagnostics)});
    diagnostics.throw_if_errors();
  } else if (arguments_.has("config-file") && arguments_.has(name_)) {
    throw ConfigError(fmt::format("--config-file: expected one recipe, got {} and {}",
                                  arguments_.text(name_), arguments_.text("config-file")));
  }
  return true;
}

bool RecipeArguments::names_dataset() const {
  if (positional_kind_ != Positional::recipe_or_dataset || !arguments_.has(name_)) return false;
  const std::string first = arguments_.text(name_);
  return first.ends_with(".beton") || first.starts_with("http://") || first.starts_with("https://");
}

std::string RecipeArguments::config_path() const {
  if (arguments_.has(name_) && !names_dataset()) return arguments_.text(name_);
  return arguments_.has("config-file") ? arguments_.text("config-file") : "";
}

}  // namespace precast::tools
