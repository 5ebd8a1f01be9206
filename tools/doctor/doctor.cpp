#include "tools/doctor/doctor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/format.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& value);

/// The name and the value of a fact, as they are printed.
std::pair<std::string, std::string> texts_of(const std::string& name, const Json& value) {
  constexpr std::string_view kBytes = "_bytes";
  if (!value.is_number() || !name.ends_with(kBytes)) return {name, text_of(value)};
  return {name.substr(0, name.size() - kBytes.size()), format_bytes(value.get<double>())};
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "none";
  if (value.is_array()) {
    std::string all;
    for (const Json& one : value) all += (all.empty() ? "" : ", ") + text_of(one);
    return all.empty() ? "none" : all;
  }
  if (value.is_object()) {
    // A pair of versions becomes `2.11.0 (built with 2.11.0)`, any other entry `name value`.
    const bool versions = value.contains("build") && value.contains("run");
    std::string all;
    if (versions)
      all = fmt::format("{} (built with {})", text_of(value["run"]), text_of(value["build"]));
    for (const auto& [name, one] : value.items()) {
      if (versions && (name == "build" || name == "run")) continue;
      const auto& [shown, text] = texts_of(name, one);
      all += fmt::format("{}{} {}", all.empty() ? "" : ", ", shown, text);
    }
    return all;
  }
  return value.dump();
}

void print_section(const std::string& title, const Json& facts) {
  fmt::print("\n{}", section_text(title, facts));
}

void print_report(const Json& facts, const std::vector<Finding>& findings) {
  fmt::print("precast {}, built with {}\n", text_of(facts["precast"]["version"]),
             text_of(facts["precast"]["compiler"]));
  print_section("libraries", facts["libraries"]);
  print_section("machine", facts["machine"]);
  if (!facts["nvidia"].is_null()) print_section("NVIDIA", facts["nvidia"]);
  print_section("libtorch (precast-train)", facts["torch"]);
  fmt::print("\n");
  if (findings.empty()) fmt::print("No problems found.\n");
  for (const Finding& finding : findings) {
    fmt::print("{}: {}\n    fix: {}\n", finding.problem ? "problem" : "warning", finding.what,
               finding.fix);
  }
}

Json findings_json(const std::vector<Finding>& findings) {
  Json all = Json::array();
  for (const Finding& finding : findings) {
    all.push_back({{"severity", finding.problem ? "problem" : "warning"},
                   {"what", finding.what},
                   {"fix", finding.fix}});
  }
  return all;
}

Arguments doctor_arguments() {
  Arguments arguments(
      "doctor [options]",
      "Shows versions, cores, memory and limits, and a fix for each problem. The exit code is 6 if "
      "libtorch does not work with this build: precast-train does not start, a library has a "
      "different major or minor version than at build time, or the NVIDIA driver is too old for "
      "libtorch. All other findings, such as a build without libtorch or too little memory, are "
      "only warnings.");
  arguments.options().add_options()("json", kJsonHelp);
  arguments.example("precast doctor");
  arguments.exit_codes({6});
  return arguments;
}

}  // namespace

std::string section_text(const std::string& title, const Json& facts) {
  std::string section = title + "\n";
  for (const auto& [name, value] : facts.items()) {
    const auto& [shown, text] = texts_of(name, value);
    section += fmt::format("  {:<18} {}\n", shown, text);
  }
  return section;
}

int run_doctor(const std::vector<std::string>& args) {
  Arguments arguments = doctor_arguments();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const bool as_json = arguments.has("json");
  Json facts = gather_facts(std::filesystem::read_symlink("/proc/self/exe").parent_path());
  const std::vector<Finding> findings = diagnose(facts);
  const bool problem = std::ranges::any_of(findings, &Finding::problem);
  if (as_json) {
    facts["findings"] = findings_json(findings);
    print_json(facts);
  } else {
    print_report(facts, findings);
  }
  return static_cast<int>(problem ? ExitCode::environment : ExitCode::done);
}

}  // namespace precast::tools
