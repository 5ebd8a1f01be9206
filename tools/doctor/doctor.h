#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace precast::tools {

/// `precast doctor [--json]`: prints facts about the build and about the machine, and lists each
/// fault with its fix. Works without libtorch: facts about libtorch come from
/// `precast-train versions --json`, the program in the same folder as this one.
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

/// The facts that `--json` prints with the findings: {precast, libraries, machine, nvidia, torch}.
/// Versions are strings; sizes are in bytes, except those in `caches_kib`. `torch` is
/// precast-train's output, or {"missing": why}, or {"error": why}. @param binaries the folder of
/// precast-train.
[[nodiscard]] nlohmann::ordered_json gather_facts(const std::filesystem::path& binaries);

/// A section of the report: a line for each fact. Numbers named `..._bytes` are printed in a
/// suitable unit, without this ending.
[[nodiscard]] std::string section_text(const std::string& title,
                                       const nlohmann::ordered_json& facts);

/// Checks the facts; missing facts are not checked.
[[nodiscard]] std::vector<Finding> diagnose(const nlohmann::ordered_json& facts);

}  // namespace precast::tools
