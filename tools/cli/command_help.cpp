#include "tools/cli/command_help.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<ExitCode, const char*> kMeanings[] = {
    {ExitCode::done, "done"},
    {ExitCode::failed, "another error"},
    {ExitCode::usage, "invalid command line, recipe or sweep"},
    {ExitCode::dataset_invalid, "invalid dataset or sample"},
    {ExitCode::checkpoint_invalid, "invalid weights or checkpoint"},
    {ExitCode::io, "a file cannot be read or written"},
    {ExitCode::environment, "a missing or unsuitable GPU, driver or library"},
    {ExitCode::loader, "the producer of a run's batches failed"},
    {ExitCode::out_of_memory, "out of memory"},
    {ExitCode::diverged, "the loss, the weights or the outputs are not finite"},
    {ExitCode::peer_failed, "another rank failed"},
    {ExitCode::stalled, "no progress for training.stall_timeout_s"},
    {ExitCode::preempted, "stopped by a signal; can be resumed"},
};
constexpr int kHungUp = 129;
constexpr int kInterrupted = 130;
constexpr int kTerminated = 143;

}  // namespace

const char* exit_code_meaning(int code) {
  for (const auto& [known, meaning] : kMeanings)
    if (static_cast<int>(known) == code) return meaning;
  if (code == kHungUp) return "the terminal was closed";
  if (code == kInterrupted) return "interrupted (Ctrl-C)";
  if (code == kTerminated) return "terminated (SIGTERM)";
  require(false, "an exit code has a meaning");
  return "";
}

Json help_json(const CommandHelp& help) {
  Json json = {
      {"name", help.name},         {"usage", help.usage},           {"summary", help.summary},
      {"about", help.about},       {"arguments", Json::array()},    {"options", Json::array()},
      {"examples", Json::array()}, {"exit_codes", help.exit_codes}, {"takes_keys", help.takes_keys},
      {"keys", Json::array()}};
  for (const ArgumentHelp& one : help.arguments)
    json["arguments"].push_back(
        {{"name", one.name}, {"help", one.help}, {"optional", one.optional}, {"list", one.list}});
  for (const OptionHelp& one : help.options)
    json["options"].push_back({{"name", one.name},
                               {"letter", one.letter},
                               {"value", one.value},
                               {"default", one.default_text},
                               {"help", one.help}});
  for (const Example& one : help.examples)
    json["examples"].push_back({{"command", one.command}, {"about", one.about}});
  for (const RecipeKey& one : help.keys)
    json["keys"].push_back({{"name", one.name},
                            {"help", one.help},
                            {"type", one.type},
                            {"default", one.value},
                            {"required", one.required},
                            {"with", one.with}});
  return json;
}

CommandHelp parse_help_json(const Json& json) {
  const auto text = [](const Json& from, const char* key) {
    return from.at(key).get<std::string>();
  };
  CommandHelp help{.name = text(json, "name"),
                   .usage = text(json, "usage"),
                   .summary = text(json, "summary"),
                   .about = text(json, "about"),
                   .arguments = {},
                   .options = {},
                   .examples = {},
                   .exit_codes = json.at("exit_codes").get<std::vector<int>>(),
                   .takes_keys = json.at("takes_keys").get<bool>(),
                   .keys = {}};
  for (const Json& one : json.at("arguments"))
    help.arguments.push_back({text(one, "name"), text(one, "help"), one.at("optional").get<bool>(),
                              one.at("list").get<bool>()});
  for (const Json& one : json.at("options"))
    help.options.push_back({text(one, "name"), text(one, "letter"), text(one, "value"),
                            text(one, "default"), text(one, "help")});
  for (const Json& one : json.at("examples"))
    help.examples.push_back({text(one, "command"), text(one, "about")});
  for (const Json& one : json.at("keys"))
    help.keys.push_back({text(one, "name"), text(one, "help"), text(one, "type"),
                         text(one, "default"), one.at("required").get<bool>(), text(one, "with")});
  return help;
}

}  // namespace precast::tools
