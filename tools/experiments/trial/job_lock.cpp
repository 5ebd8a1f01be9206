#include "tools/experiments/trial/job_lock.h"

#include <fmt/format.h>

#include <utility>

#include "framework/core/error.h"

namespace precast::tools {

FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind) {
  auto lock = FileLock::acquire(folder / "lock", kind);
  if (!lock) {
    throw IoError(fmt::format("{}: expected no other job in this folder, got {}", folder.string(),
                              lock_holder(folder / "lock")));
  }
  return std::move(*lock);
}

}  // namespace precast::tools
