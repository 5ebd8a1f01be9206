#include "tools/cli/json_output.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "framework/core/dump_json.h"

namespace precast::tools {

std::string json_text(const nlohmann::ordered_json& report) {
  return dump_json(report, 2) + "\n";
}

void print_json(const nlohmann::ordered_json& report) {
  fmt::print("{}", json_text(report));
}

}  // namespace precast::tools
