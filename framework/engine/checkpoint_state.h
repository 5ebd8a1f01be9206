#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace precast::engine {

/// The value of `format` in a checkpoint's state.json.
inline constexpr int kStateFormat = 1;

/// Reads a checkpoint's state.json. @param checkpoint its folder.
/// @throws CheckpointError if the file is damaged or has another format; IoError
[[nodiscard]] nlohmann::ordered_json read_state(const std::filesystem::path& checkpoint);

/// The counters of the optimiser, the gradient scaler or a method (Stateful).
/// @param state from read_state(). @param checkpoint names the file in messages.
/// @throws CheckpointError if the state does not contain them
[[nodiscard]] std::map<std::string, std::int64_t> counters_of(
    const nlohmann::ordered_json& state, const std::filesystem::path& checkpoint,
    const std::string& part);

}  // namespace precast::engine
