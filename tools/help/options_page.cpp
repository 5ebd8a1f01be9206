#include "tools/help/options_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tools/cli/old_spellings.h"

namespace precast::tools {
namespace {

struct Row {
  std::string form;
  std::vector<std::string> meanings;
  std::vector<std::string> commands;
};

/// `|` would end the cell.
std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

constexpr const char* kHead = R"(# Options of all commands

Made by `precast help --options > docs/options.md` from what the commands say about themselves; a test checks that it is current.
Each option has one meaning in all commands, and each meaning has one option. `precast help COMMAND` gives defaults and details.
Underscores and hyphens in names are accepted in place of each other: `--dry_run` is `--dry-run`. Commands that take a recipe also
take each of its keys as `--section.key=value`; `precast train --help-keys` lists them.

| option | meaning | commands |
| --- | --- | --- |
)";

constexpr const char* kOldHead = R"(
## Old spellings

They still work and print one line with the new spelling. `--field` has been divided by its value: `NAME=BYTES:ALIGNMENT` is a layout.

| command | old | new |
| --- | --- | --- |
)";

}  // namespace

std::string options_page(const std::vector<CommandHelp>& commands) {
  std::map<std::string, Row> rows;
  std::size_t described = 0;
  for (const CommandHelp& command : commands) {
    if (!command.options.empty()) ++described;
    for (const OptionHelp& option : command.options) {
      Row& row = rows[option.name];
      row.form =
          (option.letter.empty() ? "" : "`-" + option.letter + "`, ") + "`--" + option.name + "`";
      if (std::ranges::find(row.meanings, option.meaning()) == row.meanings.end())
        row.meanings.push_back(option.meaning());
      row.commands.push_back(command.name);
    }
  }
  std::string page = kHead;
  for (const auto& [name, row] : rows)
    page += fmt::format(
        "| {} | {} | {} |\n", row.form, cell(fmt::format("{}", fmt::join(row.meanings, " / "))),
        row.commands.size() == described ? "all"
                                         : fmt::format("{}", fmt::join(row.commands, ", ")));
  page += kOldHead;
  for (const OldSpelling& one : old_spellings())
    page += fmt::format("| {} | `--{}` | `--{}` |\n", one.command, one.old, one.now);
  return page;
}

}  // namespace precast::tools
