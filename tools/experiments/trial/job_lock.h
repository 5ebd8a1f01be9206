#pragma once

#include <filesystem>

#include "framework/core/file_lock.h"

namespace precast::tools {

/// Locks the folder of a job (a grid, a table). Warns if the file system does not support locks.
/// @throws IoError if another job holds the lock.
[[nodiscard]] FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind);

}  // namespace precast::tools
