#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace precast::tools {

/// `precast doctor [--json]`: prints facts about the build and about the machine, and lists each
/// fault with its fix. Works without libtorch: facts about libtorch come from
/// `precast-train versions --json`, started from the folder of this program.
/// @return 0, or 6 (ExitCode::environment) if there is a problem.
int run_doctor(const std::vector<std::string>& args);

/// One fault. A problem makes training fail; a warning means lost speed or a missing feature, such
/// as training in a build without libtorch.
struct Finding {
  bool problem = false;
  std::string what;
  std::string fix;
  bool operator==(const Finding&) const = default;
};

/// Returns the facts that `--json` prints together with the findings: {precast, libraries, machine,
/// nvidia, torch}. Versions are strings; sizes are in bytes, except those in `caches_kib`. `torch`
/// is precast-train's output, or {"missing": why}, or {"error": why}. @param binaries the folder of
/// precast-train.
[[nodiscard]] nlohmann::ordered_json gather_facts(const std::filesystem::path& binaries);

/// Returns a section of the report, with a line for each fact. A number named `NAME_bytes` is
/// printed as NAME, in a suitable unit.
[[nodiscard]] std::string section_text(const std::string& title,
                                       const nlohmann::ordered_json& facts);

/// Returns the faults that the facts show. Missing facts are not checked.
[[nodiscard]] std::vector<Finding> diagnose(const nlohmann::ordered_json& facts);

}  // namespace precast::tools
