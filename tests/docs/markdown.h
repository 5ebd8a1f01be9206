#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace precast::test {

/// A piece of a document that a reader would copy.
struct Quoted {
  /// block: between two ``` lines, without the fence's indentation. span: between two backticks of
  /// a paragraph, with newlines replaced by spaces, or of a table row, with \| replaced by |.
  enum class Kind { block, span };
  Kind kind;
  /// For a block: the word after ```, or empty.
  std::string language;
  std::string text;
  /// The line of its first character, from 1.
  int line;
  /// A span in the first column of a table.
  bool first_column = false;
};

/// @return the blocks and spans of a Markdown text, in its order.
std::vector<Quoted> quoted_in(std::string_view markdown);

/// @return the anchors of the headings, in their order, as GitHub makes them: without links and
/// formatting, in lower case, with hyphens for spaces and without other punctuation than `-` and
/// `_`; the second heading with the same anchor gets the suffix `-1`, the third `-2`.
std::vector<std::string> anchors_in(std::string_view markdown);

/// @return the paths of the documents of a tree, relative to it: every .md file that is not in a
/// hidden folder, a build folder or a folder of runs.
std::vector<std::string> documents(const std::filesystem::path& tree);

/// @return the numbers of lines that are indented like code and begin with `word`.
std::vector<int> indented_code(std::string_view markdown, std::string_view word);

}  // namespace precast::test
