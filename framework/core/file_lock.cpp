#include "framework/core/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/log.h"
#include "framework/core/system.h"

namespace precast {
namespace {

constexpr int kLockTries = 10;
constexpr auto kLockPause = std::chrono::milliseconds(100);

/// Writes what lock_holder() reads. Ignores errors, because the lock works without it.
void write_holder(int fd) {
  const std::optional<std::string> host = host_name();
  if (!host) return;
  const std::string text = fmt::format("{} {}\n", ::getpid(), *host);
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
}

}  // namespace

std::optional<FileLock> FileLock::try_lock(const std::filesystem::path& path, Kind kind,
                                           int (*lock)(int, int)) {
  if (lock == nullptr) lock = ::flock;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) throw IoError("cannot open", path.string(), errno);
  FileLock held(fd);
  while (held.supported_ && lock(fd, (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return std::nullopt;
    held.supported_ = errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP;
    if (held.supported_) throw IoError("cannot lock", path.string(), errno);
  }
  return held;
}

std::optional<FileLock> FileLock::acquire(const std::filesystem::path& path, Kind kind) {
  auto held = try_lock(path, kind);
  for (int i = 0; !held && i < kLockTries; ++i) {
    std::this_thread::sleep_for(kLockPause);
    held = try_lock(path, kind);
  }
  if (!held) return held;
  if (held->supported_) {
    write_holder(held->fd_);
  } else {
    log_warning(
        "{}: its file system does not support locks, so nothing prevents a second precast from "
        "using this folder: start only one at a time",
        path.parent_path().string());
  }
  return held;
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(supported_, other.supported_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::string lock_holder(const std::filesystem::path& path) {
  std::ifstream file(path);
  long process = 0;
  std::string host;
  if (file >> process >> host) return fmt::format("process {} on {}", process, host);
  return "another process";
}

}  // namespace precast
