#pragma once

#include <nlohmann/json_fwd.hpp>

namespace precast::tools {

/// Prints the --json output of a command on standard output. Bytes that are not UTF-8, which file
/// names can contain, become replacement characters.
void print_json(const nlohmann::ordered_json& report);

}  // namespace precast::tools
