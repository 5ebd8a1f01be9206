#include "tools/help/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "tools/cli/help_text.h"
#include "tools/cli/version.h"

namespace precast::tools {
namespace {

/// Escapes `text` for roff, including control characters at the beginning of a line.
std::string escaped(const std::string& text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    line_begins = c == '\n';
  }
  return result;
}

std::string with_hyphens(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string head(const std::string& command, const std::string& summary) {
  const std::string page = command.empty() ? "precast" : "precast-" + with_hyphens(command);
  std::string title = page;
  std::ranges::transform(title, title.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH \"{}\" 1 \"\" \"precast {}\" \"precast manual\"\n.SH NAME\n{} \\- {}\n",
                     escaped(title), kVersion, escaped(page), escaped(summary));
}

std::string entry(const std::string& name, const std::string& text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(text));
}

/// Formats paragraphs. Each list entry keeps its own line.
std::string paragraphs(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const bool is_entry = line.starts_with("  ");
    result +=
        (is_entry ? ".br\n" : ".PP\n") + escaped(line.substr(line.find_first_not_of(' '))) + "\n";
  }
  return result;
}

}  // namespace

std::string man_page_name(const std::string& command) {
  return command.empty() ? "precast.1" : "precast-" + with_hyphens(command) + ".1";
}

std::string man_page(const CommandHelp& command, const std::vector<RecipeKey>& keys) {
  std::string page = head(command.name, command.summary);
  page += ".SH SYNOPSIS\n\\fBprecast\\fR " + escaped(command.usage) + "\n";
  if (!command.about.empty()) page += ".SH DESCRIPTION\n" + paragraphs(command.about);
  if (!command.arguments.empty()) page += ".SH ARGUMENTS\n";
  for (const ArgumentHelp& one : command.arguments) page += entry(one.name, one.help);
  page += ".SH OPTIONS\n";
  for (const OptionHelp& one : command.options) page += entry(option_form(one), option_text(one));
  if (!keys.empty()) page += ".SH RECIPE KEYS\n";
  for (const RecipeKey& key : keys)
    page += entry("--" + key.name, fmt::format("{} ({}; {}{})", key.help, key.type,
                                               key.required ? "required" : "default " + key.value,
                                               key.with.empty() ? "" : "; with " + key.with));
  if (!command.examples.empty()) page += ".SH EXAMPLES\n";
  for (const Example& one : command.examples)
    page += fmt::format(".PP\n.nf\n{}\n.fi\n{}", escaped(one.command),
                        one.about.empty() ? "" : escaped(one.about) + "\n");
  page += ".SH EXIT STATUS\n";
  for (const int code : command.exit_codes)
    page += entry(std::to_string(code), exit_code_meaning(code));
  return page + ".SH SEE ALSO\n\\fBprecast\\fR(1)\n";
}

std::string main_man_page(const std::vector<CommandHelp>& commands) {
  std::string page = head("", "train image classifiers on .beton datasets");
  page += ".SH SYNOPSIS\n\\fBprecast\\fR COMMAND [ARGUMENTS]\n.SH COMMANDS\n";
  for (const CommandHelp& command : commands)
    page += entry("precast-" + with_hyphens(command.name) + "(1)", command.summary);
  return page;
}

}  // namespace precast::tools
