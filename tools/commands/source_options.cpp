#include "tools/commands/source_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <utility>

#include "data/http/http_client.h"
#include "data/sources/beton.h"
#include "framework/core/config/value.h"
#include "framework/core/error.h"
#include "framework/core/shell_word.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/plugins/parts_list.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// An option of sources, and the kinds that have it.
struct SourceOption {
  Schema::KeyHelp key;
  std::vector<std::string> kinds;
  /// Its name on the command line.
  [[nodiscard]] std::string name() const { return source_option_name(key.name); }
};

std::vector<SourceOption> all_options(const data::SourceRegistry& sources) {
  std::vector<SourceOption> all;
  for (const auto& entry : sources.entries()) {
    const auto part = entry.factory();
    Schema schema;
    part->options(schema);
    for (Schema::KeyHelp& key : schema.keys()) {
      auto same = std::ranges::find_if(
          all, [&](const SourceOption& option) { return option.key.name == key.name; });
      if (same == all.end()) same = all.insert(all.end(), {std::move(key), {}});
      same->kinds.push_back(entry.name);
    }
  }
  return all;
}

/// @throws ConfigError for a list that is not YAML.
ConfigNode value_of(const SourceOption& option, const Arguments& arguments) {
  const Origin origin{kCommandLine, 0, 0};
  const std::string text = arguments.text(option.name());
  if (option.key.type.starts_with("list of ")) {
    Diagnostics diagnostics;
    ConfigNode list = parse_override(text, origin, diagnostics);
    diagnostics.throw_if_errors();
    return list;
  }
  // Other values are never YAML: the name of a file may begin with a bracket.
  return ConfigNode::from_text(text, origin);
}

/// The options on the command line as options of a source of this kind. @throws ConfigError for an
/// option that only other kinds of source have
PartSpec chosen_options(const Arguments& arguments, const data::SourceRegistry& sources,
                        const std::string& kind) {
  PartSpec spec{.name = kind, .key = "source"};
  spec.options.kind = ConfigNode::Kind::map;
  for (const SourceOption& option : all_options(sources)) {
    const std::string name = option.name();
    if (!arguments.given(name)) continue;
    if (std::ranges::count(option.kinds, kind) == 0) {
      throw ConfigError(fmt::format("--{}: expected a source of kind {}, got {} of kind {}", name,
                                    fmt::join(option.kinds, " or "), arguments.text("SOURCE"),
                                    kind));
    }
    spec.options.entries.push_back({option.key.name, {}, value_of(option, arguments)});
  }
  return spec;
}

/// Adds names to an option that is a list of names.
void add_names(PartSpec& spec, const std::string& option, const std::vector<std::string>& names) {
  auto& entries = spec.options.entries;
  auto entry = std::ranges::find(entries, option, &ConfigNode::Entry::key);
  if (entry == entries.end()) entry = entries.insert(entry, {option, {}, {}});
  std::vector<std::string> all;
  // The schema reports a value that is no list of names.
  if (entry->value.kind != ConfigNode::Kind::null && !read_value(entry->value, &all)) return;
  all.insert(all.end(), names.begin(), names.end());
  entry->value = {};
  entry->value.kind = ConfigNode::Kind::list;
  for (const std::string& name : all) entry->value.items.push_back(ConfigNode::from_text(name));
}

}  // namespace

void add_source_options(po::options_description& options, const data::SourceRegistry& sources) {
  options.add_options()("source-kind", po::value<std::string>()->default_value("auto"),
                        "kind of SOURCE; auto: recognised by its name and content");
  for (const SourceOption& option : all_options(sources)) {
    const std::string help =
        fmt::format("{}. For sources of kind {}", option.key.help, fmt::join(option.kinds, ", "));
    options.add_options()(option.name().c_str(), po::value<std::string>()->default_value(""),
                          help.c_str());
  }
  options.add_options()(
      "on-corrupt", po::value<std::string>()->default_value("fail"),
      "what to do with damaged samples; fail: stop; skip: leave them out and list them");
}

std::string given_source_options(const Arguments& arguments, const data::SourceRegistry& sources) {
  std::vector<std::string> names = {"source-kind", "on-corrupt"};
  for (const SourceOption& option : all_options(sources)) names.push_back(option.name());
  std::string text;
  for (const std::string& name : names)
    if (arguments.given(name))
      text += fmt::format(" --{} {}", name, shell_word(arguments.text(name)));
  return text;
}

std::unique_ptr<data::Source> open_chosen_source(
    const Arguments& arguments, const data::SourceRegistry& sources,
    const data::BetonOptions& layouts,
    const std::map<std::string, std::vector<std::string>>& columns) {
  const std::string source = arguments.text("SOURCE");
  const std::string kind = arguments.text("source-kind");
  if (layouts.layouts.empty()) {
    PartSpec spec = chosen_options(arguments, sources, data::kind_of_source(sources, source, kind));
    if (spec.name == "table")
      for (const auto& [option, names] : columns) add_names(spec, option, names);
    if (data::is_url(source)) return data::open_beton(source, layouts);
    return data::open_source(sources, source, spec);
  }
  (void)chosen_options(arguments, sources, "beton");
  if (kind != "auto" && kind != "beton")
    throw ConfigError(
        fmt::format("--field-layout {}=BYTES:ALIGNMENT: expected a .beton file as SOURCE, got "
                    "--source-kind {}. Only .beton files have custom fields",
                    layouts.layouts.begin()->first, kind));
  return data::open_beton(source, layouts);
}

}  // namespace precast::tools
