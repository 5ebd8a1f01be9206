#include "tools/cli/json_output.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace precast::tools {

std::string json_text(const nlohmann::ordered_json& report) {
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_json(const nlohmann::ordered_json& report) {
  fmt::print("{}", json_text(report));
}

}  // namespace precast::tools
