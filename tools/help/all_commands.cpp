#include "tools/help/all_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/core/error.h"
#include "framework/process/child_process.h"
#include "tools/cli/exec_sibling.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kTimeout{120};

/// The lines of `PROGRAM help --json`.
std::vector<Json> lines_of(const std::string& program) {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const ChildResult child = run_child({(folder / program).string(), "help", "--json"}, kTimeout);
  if (child.exit_code != 0)
    throw Error(fmt::format("{} help --json: expected exit code 0, got {}. {}", program,
                            child.exit_code, child.errors));
  std::vector<Json> lines;
  std::istringstream text(child.output);
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

/// Replaces the entries that `lines` describe. The new entries keep the old summaries.
void describe(std::vector<CommandHelp>& commands, const std::vector<Json>& lines) {
  for (const Json& line : lines) {
    if (!line.contains("usage")) continue;
    CommandHelp help = parse_help_json(line);
    const auto found = std::ranges::find(commands, help.name, &CommandHelp::name);
    if (found == commands.end()) continue;
    help.summary = found->summary;
    *found = std::move(help);
  }
}

}  // namespace

std::vector<CommandHelp> all_commands() {
  std::vector<CommandHelp> commands;
  const std::vector<Json> own = lines_of("precast");
  for (const Json& one : own.at(0).at("commands")) {
    CommandHelp& command = commands.emplace_back();
    command.name = one.at("name").get<std::string>();
    command.summary = one.at("summary").get<std::string>();
  }
  describe(commands, own);
  if (has_precast_train()) describe(commands, lines_of("precast-train"));
  return commands;
}

std::vector<std::string> command_groups(const std::vector<CommandHelp>& commands) {
  std::vector<std::string> groups;
  for (const CommandHelp& command : commands) {
    const std::size_t space = command.name.find(' ');
    if (space == std::string::npos) continue;
    const std::string group = command.name.substr(0, space);
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

std::vector<RecipeKey> all_keys(const std::vector<CommandHelp>& commands) {
  for (const CommandHelp& command : commands)
    if (!command.keys.empty()) return command.keys;
  return {};
}

}  // namespace precast::tools
