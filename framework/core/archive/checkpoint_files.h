#pragma once

#include <cstdint>

namespace precast {

/// The files of a checkpoint besides the manifest; framework/engine/README.md describes their
/// contents. @{
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kMethodsFile = "methods.safetensors";
/// Each rank's random generators, and its sum and count of losses.
inline constexpr const char* kRanksFile = "ranks.safetensors";
inline constexpr const char* kStateFile = "state.json";
/// @}
inline constexpr std::uint64_t kMaxStateBytes = 100'000'000;

}  // namespace precast
