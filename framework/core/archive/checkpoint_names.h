#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "framework/core/export.h"

namespace precast {

/// `ckpt-0000000042`
[[nodiscard]] std::string checkpoint_name(std::int64_t step);
/// The step in the name of a checkpoint; nullopt for any other name.
[[nodiscard]] PRECAST_API std::optional<std::int64_t> checkpoint_step(const std::string& name);

/// A temporary name in the folder of `checkpoint` that no other call, process or host generates:
/// `ckpt-0000000042.tmp.<host>.<process>.<token>`.
[[nodiscard]] std::filesystem::path temporary_path(const std::filesystem::path& checkpoint);
/// Whether the folder has a temporary name of a checkpoint.
[[nodiscard]] bool is_temporary(const std::filesystem::path& path);
/// Whether the folder has such a temporary name and its writer has ended: the writer was a process
/// on this host that no longer exists, or the folder is older than a day.
[[nodiscard]] bool is_stale_temporary(const std::filesystem::path& path);

}  // namespace precast
