#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// Prints rows on standard output, with columns as wide as their widest cell and right-aligned.
/// @param rows all of the same length; the first row is the header.
void print_text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace precast::tools
