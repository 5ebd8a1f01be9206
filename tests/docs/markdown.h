#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace precast::test {

/// A block or a span of code in a document.
struct Quoted {
  /// block: the lines between two ``` fences, without the fence's indentation. span: the text
  /// between two backticks. In a paragraph, newlines are replaced by spaces; in a row of a table,
  /// \| by |.
  enum class Kind { block, span };
  Kind kind;
  /// For a block: the word after ```, or empty.
  std::string language;
  std::string text;
  /// The line of its first character, counted from 1.
  int line;
  /// Whether it is a span in the first column of a table.
  bool first_column = false;
};

/// @return the blocks and spans of a Markdown text, in the order of the text.
std::vector<Quoted> quoted_in(std::string_view markdown);

/// @return the anchors that GitHub creates for the headings, in the order of the text. An anchor
/// has no links or formatting, is in lower case, has hyphens for spaces, and contains no
/// punctuation except `-` and `_`. If headings have the same anchor, the second gets the suffix
/// `-1`, the third `-2`.
std::vector<std::string> anchors_in(std::string_view markdown);

/// @return the paths of all .md files of a tree, relative to `tree`, except those in hidden
/// folders, build folders and folders of runs.
std::vector<std::string> documents(const std::filesystem::path& tree);

/// @return the numbers of lines that are indented like code and begin with `word`.
std::vector<int> indented_code(std::string_view markdown, std::string_view word);

}  // namespace precast::test
