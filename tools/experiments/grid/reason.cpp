#include "tools/experiments/grid/reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace precast::tools {
namespace {

/// The cause is searched for in the last kTail bytes of the output, and shortened to
/// kMaxReasonBytes bytes.
constexpr std::uintmax_t kTail = 8192;
constexpr std::size_t kMaxReasonBytes = 300;

/// Removes the prefix `[rank N] `, which the launcher adds to the lines of ranks other than zero.
void remove_rank(std::string& line) {
  constexpr std::string_view kRank = "[rank ";
  constexpr std::string_view kEnd = "] ";
  if (!line.starts_with(kRank)) return;
  if (const auto end = line.find(kEnd); end != std::string::npos) line.erase(0, end + kEnd.size());
}

/// What the last attempt printed about its failure: the last line `error: ...` of any rank, else
/// the first line `launcher: ...`, which says how the first rank failed. Empty if there is neither.
/// @param begin the position in `output` at which the last attempt started.
std::string last_error(const std::filesystem::path& output, std::uintmax_t begin) {
  constexpr std::string_view kError = "error: ";
  constexpr std::string_view kLauncher = "launcher: ";
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(output, missing);
  if (missing) return {};
  if (begin > size) begin = 0;  // the file was replaced
  std::ifstream file(output);
  file.seekg(static_cast<std::streamoff>(std::max(begin, size > kTail ? size - kTail : 0)));
  std::string error, launcher;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kLauncher) && launcher.empty())
      launcher = line.substr(kLauncher.size(), kMaxReasonBytes);
    remove_rank(line);
    if (line.starts_with(kError)) error = line.substr(kError.size(), kMaxReasonBytes);
  }
  return error.empty() ? launcher : error;
}

}  // namespace

std::string reason_of(const Trial& trial, const TrialState& state) {
  if (state.status == TrialStatus::stopped) return "stopped early";
  if (state.status != TrialStatus::failed && state.status != TrialStatus::diverged) return {};
  const std::string error = last_error(trial.run_folder() / "output", state.output_begin);
  const std::string end = exit_text(state.exit_code);
  return error.empty() ? end : fmt::format("{}: {}", end, error);
}

}  // namespace precast::tools
