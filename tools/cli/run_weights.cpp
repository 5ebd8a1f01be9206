#include "tools/cli/run_weights.h"

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

namespace precast::tools {

std::optional<StoredCheckpoint> newer_checkpoint(const std::filesystem::path& run) {
  const auto checkpoints = find_checkpoints(run / kCheckpoints);
  if (checkpoints.empty()) return std::nullopt;
  const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"), nullptr,
                                             /*allow_exceptions=*/false);
  // Earlier versions did not record the steps.
  if (!summary.is_object() || !summary.contains("steps") || !summary["steps"].is_number())
    return std::nullopt;
  const auto finished = summary["steps"].get<std::int64_t>();
  if (checkpoints[0].step <= finished) return std::nullopt;
  // This reads whole checkpoints to verify them. The newest valid one may be older than the final
  // weights.
  std::optional<StoredCheckpoint> valid = latest_valid_checkpoint(run / kCheckpoints);
  return valid && valid->step > finished ? valid : std::nullopt;
}

}  // namespace precast::tools
