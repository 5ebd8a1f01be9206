#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// Prints rows on standard output, columns as wide as their widest cell and aligned to the right.
/// @param rows the first one is the head; all of the same length.
void print_text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace precast::tools
