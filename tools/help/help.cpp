#include "tools/help/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/suggest.h"
#include "tools/cli/arguments.h"
#include "tools/help/all_commands.h"
#include "tools/help/completion.h"
#include "tools/help/man_page.h"
#include "tools/help/options_page.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

Arguments help_arguments() {
  Arguments arguments("help [COMMAND]",
                      "Lists all commands, or describes one. The options print or write the same "
                      "descriptions in other formats.");
  arguments.optional_positional("COMMAND", "one or two words, such as bench loader");
  arguments.options().add_options()("man", po::value<std::string>()->value_name("COMMAND"),
                                    "print the manual page of a command; as roff, for man -l")(
      "man-pages", po::value<std::string>()->value_name("FOLDER"),
      "write the manual pages of all commands into a folder")(
      "options", "print docs/options.md, the table of all options")(
      "json",
      "print the result as JSON; a line that lists all commands, then one line per command of this "
      "program; with COMMAND, only the line of this command");
  arguments.example("precast help bench loader");
  arguments.example("precast help --man write | man -l -", "shows a manual page");
  return arguments;
}

Arguments completion_arguments() {
  Arguments arguments(
      "completion SHELL",
      "Prints a shell script that completes commands, options and keys of recipes.");
  arguments.positional("SHELL", "bash or zsh");
  arguments.example("precast completion bash > ~/.local/share/bash-completion/completions/precast");
  arguments.example("precast completion zsh > ~/.zsh/_precast", "with ~/.zsh in $fpath");
  return arguments;
}

/// Whether the command has a description. Without precast-train, its commands have none.
bool has_page(const CommandHelp& command) {
  return !command.usage.empty();
}

std::string page_of(const CommandHelp& command) {
  // The other commands that take keys refer to this page.
  return man_page(command, command.name == "train" ? command.keys : std::vector<RecipeKey>{});
}

void print_man_page(const std::string& name) {
  std::string plain = name;
  std::ranges::replace(plain, '-', ' ');
  const auto commands = all_commands();
  std::vector<std::string> names;
  for (const CommandHelp& command : commands) {
    if (command.name == plain && has_page(command)) return fmt::print("{}", page_of(command));
    names.push_back(command.name);
  }
  throw ConfigError(fmt::format("--man: unknown command '{}'. {}", name, suggest(name, names)));
}

void write_man_pages(const std::filesystem::path& folder) {
  create_folders(folder);
  const auto commands = all_commands();
  write_file(folder / man_page_name(""), main_man_page(commands));
  for (const CommandHelp& command : commands)
    if (has_page(command)) write_file(folder / man_page_name(command.name), page_of(command));
}

}  // namespace

int run_help(const std::vector<std::string>& args) {
  Arguments arguments = help_arguments();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const std::string second = arguments.has("COMMAND") ? " " + arguments.text("COMMAND") : "";
  if (arguments.has("man")) print_man_page(arguments.text("man") + second);
  if (arguments.has("man-pages")) write_man_pages(arguments.text("man-pages"));
  if (arguments.has("options")) fmt::print("{}", options_page(all_commands()));
  return static_cast<int>(ExitCode::done);
}

int run_completion(const std::vector<std::string>& args) {
  Arguments arguments = completion_arguments();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const std::string shell = arguments.text("SHELL");
  if (shell != "bash" && shell != "zsh")
    throw ConfigError(fmt::format("SHELL: expected bash or zsh, got '{}'", shell));
  const auto commands = all_commands();
  fmt::print("{}", shell == "bash" ? bash_completion(commands) : zsh_completion(commands));
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
