#include "tools/experiments/grid/reason.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace precast::tools {
namespace {

/// The last error is searched for in this many bytes at the end of the output. It is shortened to
/// kLongest bytes.
constexpr std::uintmax_t kTail = 8192;
constexpr std::size_t kLongest = 300;

/// The last line `error: ...` that the trial printed; empty if there is none.
std::string last_error(const std::filesystem::path& output) {
  constexpr std::string_view kError = "error: ";
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(output, missing);
  if (missing) return {};
  std::ifstream file(output);
  file.seekg(static_cast<std::streamoff>(size > kTail ? size - kTail : 0));
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kError)) last = line.substr(kError.size(), kLongest);
  }
  return last;
}

}  // namespace

std::string reason_of(const Trial& trial, const TrialState& state) {
  if (state.status == TrialStatus::stopped) return "stopped early";
  if (state.status != TrialStatus::failed && state.status != TrialStatus::diverged) return {};
  const std::string error = last_error(trial.run_folder() / "output");
  const std::string end = end_text(state.exit_code);
  return error.empty() ? end : fmt::format("{}: {}", end, error);
}

}  // namespace precast::tools
