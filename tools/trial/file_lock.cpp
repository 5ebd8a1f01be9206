#include "tools/trial/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "framework/core/error.h"

namespace precast::tools {

std::optional<FileLock> FileLock::try_lock(const std::filesystem::path& path, Kind kind) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) throw IoError("cannot open", path.string(), errno);
  FileLock lock(fd);
  while (::flock(fd, (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::nullopt;
    throw IoError("cannot lock", path.string(), errno);
  }
  return lock;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind) {
  auto lock = FileLock::try_lock(folder / "lock", kind);
  if (!lock) throw Error(fmt::format("{}: another precast works in this folder", folder.string()));
  return std::move(*lock);
}

}  // namespace precast::tools
