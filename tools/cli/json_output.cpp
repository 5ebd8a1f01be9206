#include "tools/cli/json_output.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace precast::tools {

void print_json(const nlohmann::ordered_json& report) {
  fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace precast::tools
