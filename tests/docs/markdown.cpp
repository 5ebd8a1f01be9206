#include "tests/docs/markdown.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <sstream>

namespace precast::test {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t indent(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

bool is_fence(std::string_view line) {
  return line.substr(indent(line)).starts_with("```");
}

/// Appends the spans of `text` to `all`.
/// @param text a paragraph or a row of a table; `line` is the number of its first line.
void add_spans(const std::string& text, int line, std::vector<Quoted>& all) {
  const bool row = text.starts_with("|");
  for (std::size_t at = text.find('`'); at != text.npos;) {
    const std::size_t end = text.find('`', at + 1);
    if (end == text.npos) return;
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<long>(at), '\n');
    // A span in the first column has only one bar before it: the bar that begins the row.
    const bool first =
        row && std::count(text.begin(), text.begin() + static_cast<long>(at), '|') == 1;
    Quoted span{Quoted::Kind::span, "", text.substr(at + 1, end - at - 1),
                line + static_cast<int>(newlines), first};
    std::ranges::replace(span.text, '\n', ' ');
    for (std::size_t bar; row && (bar = span.text.find("\\|")) != span.text.npos;)
      span.text.erase(bar, 1);
    all.push_back(std::move(span));
    at = text.find('`', end + 1);
  }
}

}  // namespace

std::vector<Quoted> quoted_in(std::string_view markdown) {
  std::vector<Quoted> all;
  const std::vector<std::string> lines = lines_of(markdown);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::size_t begin = i;
    std::string text;
    if (is_fence(lines[i])) {
      const std::size_t margin = indent(lines[i]);
      for (++i; i < lines.size() && !is_fence(lines[i]); ++i)
        text += lines[i].substr(std::min(margin, indent(lines[i]))) + '\n';
      all.push_back({Quoted::Kind::block, lines[begin].substr(margin + 3), text,
                     static_cast<int>(begin) + 2});
      continue;
    }
    // A span may continue in the next line of its paragraph, not in the next row of a table.
    text = lines[i];
    while (!text.starts_with("|") && i + 1 < lines.size() && !lines[i + 1].empty() &&
           !is_fence(lines[i + 1]) && !lines[i + 1].starts_with("|"))
      text += '\n' + lines[++i];
    add_spans(text, static_cast<int>(begin) + 1, all);
  }
  return all;
}

std::vector<std::string> anchors_in(std::string_view markdown) {
  static const std::regex kHeading("#{1,6} +(.*?) *#* *");
  static const std::regex kLink(R"(\[([^\]]*)\]\([^)]*\))");
  std::vector<std::string> all;
  std::map<std::string, int> times;
  bool fenced = false;
  for (const std::string& line : lines_of(markdown)) {
    if (is_fence(line)) fenced = !fenced;
    std::smatch heading;
    if (fenced || !std::regex_match(line, heading, kHeading)) continue;
    std::string anchor;
    for (const char c : std::regex_replace(heading.str(1), kLink, "$1")) {
      const auto byte = static_cast<unsigned char>(c);
      // Bytes from 0x80 on are parts of letters of other alphabets.
      if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80)
        anchor += static_cast<char>(std::tolower(byte));
      if (c == ' ') anchor += '-';
    }
    const int before = times[anchor]++;
    all.push_back(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return all;
}

std::vector<std::string> documents(const std::filesystem::path& tree) {
  std::vector<std::string> all;
  for (auto entry = std::filesystem::recursive_directory_iterator(tree);
       entry != std::filesystem::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() &&
        (name.starts_with(".") || name.starts_with("build") || name == "runs"))
      entry.disable_recursion_pending();
    if (entry->path().extension() == ".md")
      all.push_back(entry->path().lexically_relative(tree).string());
  }
  std::ranges::sort(all);
  return all;
}

std::vector<int> indented_code(std::string_view markdown, std::string_view word) {
  std::vector<int> found;
  bool fenced = false;
  int number = 0;
  for (const std::string& line : lines_of(markdown)) {
    ++number;
    if (is_fence(line)) fenced = !fenced;
    if (!fenced && indent(line) >= 4 && line.substr(indent(line)).starts_with(word))
      found.push_back(number);
  }
  return found;
}

}  // namespace precast::test
