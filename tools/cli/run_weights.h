#pragma once

#include <filesystem>
#include <optional>

#include "framework/core/archive/checkpoint_folder.h"

namespace precast::tools {

/// Files and folders in a run folder. @{
inline constexpr const char* kRunParams = "params.json";
inline constexpr const char* kFinalWeights = "final_weights.safetensors";
inline constexpr const char* kCheckpoints = "checkpoints";
/// @}

/// The newest valid checkpoint of a run with final weights, if it is newer than the final weights.
/// A finished run that was continued has such checkpoints until it finishes again. @return nullopt
/// also if summary.json does not record the step of the final weights, or cannot be read.
/// @throws IoError if the checkpoints cannot be listed.
[[nodiscard]] std::optional<StoredCheckpoint> newer_checkpoint(const std::filesystem::path& run);

}  // namespace precast::tools
