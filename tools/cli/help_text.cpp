#include "tools/cli/help_text.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace precast::tools {
namespace {

constexpr std::size_t kWidthWithoutTerminal = 80;
constexpr std::size_t kMinWidth = 40;
constexpr std::size_t kMaxWidth = 100;
/// The right column of a list begins here or, if all names are short, further left.
constexpr std::size_t kTextColumn = 30;

/// The column at which the text of a list entry `  name   text` begins; 0 for other lines.
std::size_t entry_indent(std::string_view line) {
  if (!line.starts_with("  ")) return 0;
  const std::size_t name = line.find_first_not_of(' ');
  const std::size_t gap = line.find("  ", name);
  if (gap == std::string_view::npos) return name;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

std::string wrapped_lines(std::string_view text, std::size_t width) {
  std::string result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t indent = entry_indent(line);
    const std::size_t room = std::min(indent, line.size());
    result += line.substr(0, room);
    result += wrap(line.substr(room), width, indent, indent) + "\n";
    begin = end + 1;
  }
  return result;
}

std::string key_text(const RecipeKey& key) {
  std::string type = key.type;  // spaces around `|` allow line breaks between choices
  for (std::size_t at = 0; (at = type.find('|', at)) != std::string::npos; at += 3)
    type.replace(at, 1, " | ");
  return fmt::format("{} ({}; {})", key.help, type,
                     key.required ? "required" : "default " + key.value);
}

}  // namespace

std::size_t help_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 ||
      size.ws_col == 0)
    return kWidthWithoutTerminal;
  return std::clamp<std::size_t>(size.ws_col, kMinWidth, kMaxWidth);
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent, std::size_t begin) {
  std::string result;
  std::size_t column = begin;
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!first && column + 1 + word.size() > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
    first = false;
  }
  return result;
}

std::string two_columns(const std::vector<TextRow>& rows, std::size_t width) {
  std::size_t longest = 0;
  for (const TextRow& row : rows) longest = std::max(longest, row.name.size());
  const std::size_t column = std::min({longest + 4, kTextColumn, width / 2});
  std::string result;
  for (const TextRow& row : rows) {
    std::string line = "  " + row.name;
    if (line.size() + 2 > column) {
      result += line + "\n";
      line.clear();
    }
    line.resize(column, ' ');
    result += line + wrap(row.text, width, column, column) + "\n";
  }
  return result;
}

std::string option_form(const OptionHelp& option) {
  return fmt::format("{}--{}{}{}", option.letter.empty() ? "" : "-" + option.letter + ", ",
                     option.name, option.value.empty() ? "" : " ", option.value);
}

std::string option_text(const OptionHelp& option) {
  if (option.default_text.empty()) return option.help;
  return fmt::format("{} (default {})", option.help, option.default_text);
}

std::string help_text(const CommandHelp& help, std::size_t width) {
  std::string text = wrap("usage: precast " + help.usage, width, 10, 0) + "\n";
  if (!help.about.empty()) text += "\n" + wrapped_lines(help.about, width);
  std::vector<TextRow> arguments, options;
  for (const ArgumentHelp& one : help.arguments) arguments.push_back({one.name, one.help});
  for (const OptionHelp& one : help.options)
    options.push_back({option_form(one), option_text(one)});
  if (!arguments.empty()) text += "\narguments:\n" + two_columns(arguments, width);
  text += "\noptions:\n" + two_columns(options, width);
  if (help.takes_keys)
    text += "\n" +
            wrap(
                "Keys of a recipe are given as --section.key=value. `precast train "
                "--help-keys` lists them.",
                width, 0, 0) +
            "\n";
  if (!help.examples.empty()) text += "\nexamples:\n";
  for (const Example& one : help.examples) {
    text += "  " + one.command + "\n";
    if (!one.about.empty()) text += "      " + wrap(one.about, width, 6, 6) + "\n";
  }
  std::string codes;
  for (const int code : help.exit_codes)
    codes += fmt::format("{}{} {}", codes.empty() ? "exit codes: " : ", ", code,
                         exit_code_meaning(code));
  if (!codes.empty()) text += "\n" + wrap(codes, width, 2, 0) + "\n";
  return text;
}

std::string keys_text(const std::vector<RecipeKey>& keys, std::size_t width) {
  std::vector<std::string> sections;
  for (const RecipeKey& key : keys)
    if (std::ranges::find(sections, key.section()) == sections.end())
      sections.push_back(key.section());
  std::string text =
      wrap(
          "Keys of a recipe: `section: {key: value}` in the file, --section.key=value on the "
          "command line. Each is shown with its type, allowed values and default.",
          width, 0, 0) +
      "\n";
  for (const std::string& section : sections) {
    text += "\n" + section + "\n";
    std::string with;
    std::vector<TextRow> rows;
    const auto flush = [&] {
      if (!with.empty() && !rows.empty()) text += "  with " + with + ":\n";
      text += two_columns(rows, width);
      rows.clear();
    };
    for (const RecipeKey& key : keys) {
      if (key.section() != section) continue;
      if (key.with != with) flush();
      with = key.with;
      rows.push_back({key.name, key_text(key)});
    }
    flush();
  }
  return text;
}

}  // namespace precast::tools
