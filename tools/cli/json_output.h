#pragma once

#include <nlohmann/json_fwd.hpp>

namespace precast::tools {

/// What a command prints with --json, on standard output. Bytes that are no UTF-8, as names of
/// files may have, become replacement characters.
void print_json(const nlohmann::ordered_json& report);

}  // namespace precast::tools
