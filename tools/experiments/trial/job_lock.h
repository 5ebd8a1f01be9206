#pragma once

#include <filesystem>

#include "framework/core/file_lock.h"

namespace precast::tools {

/// Locks a folder that jobs (grids, tables) work in. Warns if locks are not supported. @throws
/// Error if another job holds it.
[[nodiscard]] FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind);

}  // namespace precast::tools
