#include "tools/experiments/trial/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"

namespace precast::tools {
namespace {

constexpr int kLockTries = 10;
constexpr auto kLockPause = std::chrono::milliseconds(100);

}  // namespace

std::optional<FileLock> FileLock::try_lock(const std::filesystem::path& path, Kind kind,
                                           int (*lock)(int, int)) {
  if (lock == nullptr) lock = ::flock;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) throw IoError("cannot open", path.string(), errno);
  FileLock held(fd);
  while (held.works_ && lock(fd, (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::nullopt;
    held.works_ = errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP;
    if (held.works_) throw IoError("cannot lock", path.string(), errno);
  }
  return held;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(works_, other.works_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind) {
  auto lock = FileLock::try_lock(folder / "lock", kind);
  // A newly forked child of a killed job holds the lock until it has checked for its parent.
  for (int i = 0; !lock && i < kLockTries; ++i) {
    std::this_thread::sleep_for(kLockPause);
    lock = FileLock::try_lock(folder / "lock", kind);
  }
  if (!lock) throw Error(fmt::format("{}: another precast works in this folder", folder.string()));
  if (!lock->works()) {
    log_warning(
        "{}: its file system knows no locks, so nothing keeps a second precast out of this folder: "
        "start one at a time",
        folder.string());
  }
  return std::move(*lock);
}

}  // namespace precast::tools
