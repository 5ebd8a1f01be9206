#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// Prints rows on standard output, with columns as wide as their widest cell and right-aligned.
/// @param rows the first one is the header; all of the same length.
void print_text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace precast::tools
