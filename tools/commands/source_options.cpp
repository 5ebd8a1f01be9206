#include "tools/commands/source_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <utility>

#include "data/sources/beton.h"
#include "framework/core/error.h"
#include "tools/cli/shell_word.h"
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
                                    fmt::join(option.kinds, ", "), arguments.text("SOURCE"), kind));
    }
    ConfigNode value;
    value.kind = ConfigNode::Kind::scalar;
    value.scalar = arguments.text(name);
    value.origin = {"command line", 0, 0};
    spec.options.entries.push_back({option.key.name, {}, std::move(value)});
  }
  return spec;
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

std::unique_ptr<data::Source> open_chosen_source(const Arguments& arguments,
                                                 const data::SourceRegistry& sources,
                                                 const data::BetonOptions& layouts,
                                                 const std::vector<std::string>& texts) {
  const std::string source = arguments.text("SOURCE");
  const std::string kind = arguments.text("source-kind");
  if (layouts.layouts.empty()) {
    PartSpec spec = chosen_options(arguments, sources, data::kind_of_source(sources, source, kind));
    if (spec.name == "table" && !texts.empty()) {
      ConfigNode names;
      names.kind = ConfigNode::Kind::list;
      for (const std::string& text : texts) {
        names.items.emplace_back().kind = ConfigNode::Kind::scalar;
        names.items.back().scalar = text;
      }
      spec.options.entries.push_back({"texts", {}, std::move(names)});
    }
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
