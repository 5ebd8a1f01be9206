#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "framework/core/export.h"

namespace precast {

/// A lock on a file that excludes other processes (flock; on NFS, processes on all hosts). It is
/// released when this object has been destroyed and every process that inherited its descriptor has
/// ended. If this process is killed with SIGKILL, a child that inherited the descriptor therefore
/// still holds the lock. The file is not removed.
class PRECAST_API FileLock {
 public:
  enum class Kind { shared, exclusive };
  /// Tries once. Creates the file if it is missing. @param lock flock, or a test's replacement.
  /// @return nothing if a conflicting lock is held. @throws IoError
  [[nodiscard]] static std::optional<FileLock> try_lock(const std::filesystem::path& path,
                                                        Kind kind = Kind::exclusive,
                                                        int (*lock)(int fd,
                                                                    int operation) = nullptr);
  /// Tries for a second, because a killed process may take a moment to end. Then writes the host
  /// name and the process id into the file, for lock_holder(). If the file system does not support
  /// locks, only warns. @return and @throws like try_lock().
  [[nodiscard]] static std::optional<FileLock> acquire(const std::filesystem::path& path,
                                                       Kind kind = Kind::exclusive);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_), supported_(other.supported_) {
    other.fd_ = -1;
  }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();
  /// False if the file system does not support locks, as on some clusters with Lustre or NFS; the
  /// lock then has no effect.
  [[nodiscard]] bool is_supported() const { return supported_; }
  /// The lock file's descriptor. Programs that this process starts inherit it only if it is passed
  /// to them.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
  bool supported_ = true;
};

/// The process that acquired the lock last: `process 4711 on node3`, or `another process` if the
/// file does not contain its id.
[[nodiscard]] PRECAST_API std::string lock_holder(const std::filesystem::path& path);

}  // namespace precast
