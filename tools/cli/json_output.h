#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace precast::tools {

/// `report` as indented text that ends with a newline. Bytes that are not UTF-8, which file names
/// can contain, become replacement characters.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& report);

/// Prints the --json output of a command, json_text(), on standard output.
void print_json(const nlohmann::ordered_json& report);

}  // namespace precast::tools
