#pragma once

#include <span>
#include <string_view>

namespace precast::tools {

/// An option that has been renamed. The old spelling still works, and prints one line with the new
/// spelling.
struct OldSpelling {
  /// The values to which the row applies, if the old name has two meanings.
  enum class Values { all, layouts, others };

  std::string_view command;
  /// Old and new name, both without `--`.
  std::string_view old;
  std::string_view now;
  /// An example of a value that the option accepts; empty for a switch.
  std::string_view value;
  Values values = Values::all;
};

[[nodiscard]] std::span<const OldSpelling> old_spellings();

/// The row of an option of `command`; nullptr if `option` is not an old spelling.
/// @param option without `--`, with hyphens. @param value the value given for it.
[[nodiscard]] const OldSpelling* find_old_spelling(std::string_view command,
                                                   std::string_view option, std::string_view value);

}  // namespace precast::tools
