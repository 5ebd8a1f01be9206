#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace precast::tools {

/// `precast doctor [--json]`: prints what precast was built with and what it finds at run time, and
/// names what is wrong with its cure. Works where libtorch is absent: its facts come from running
/// `precast-train versions --json`, which lies beside precast.
/// @return 0, or 6 (ExitCode::environment) if something is wrong that keeps a job from running.
int run_doctor(const std::vector<std::string>& args);

/// One thing that is wrong. A warning costs speed or a feature; a problem keeps jobs from running.
struct Finding {
  bool problem = false;
  std::string what;
  std::string cure;
  bool operator==(const Finding&) const = default;
};

/// What doctor knows, as `--json` shows it: {precast, libraries, machine, nvidia, torch}.
/// Versions are strings, sizes are bytes. `torch` is precast-train's answer, or {"missing": why},
/// or
/// {"error": its message}. @param binaries the folder of precast-train.
[[nodiscard]] nlohmann::ordered_json gather_facts(const std::filesystem::path& binaries);

/// Judges such facts; facts that are not there are not judged.
[[nodiscard]] std::vector<Finding> judge_facts(const nlohmann::ordered_json& facts);

}  // namespace precast::tools
