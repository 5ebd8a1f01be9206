#pragma once

#include <filesystem>
#include <optional>

namespace precast::tools {

/// A lock between processes on a file (flock). It is held until this object and every process that
/// inherited its descriptor are gone: after kill -9 of this process a child still holds it.
class FileLock {
 public:
  enum class Kind { shared, exclusive };
  /// Creates the file if it is missing. @param lock flock, or a test's replacement.
  /// @return nothing if another process holds it. @throws IoError
  [[nodiscard]] static std::optional<FileLock> try_lock(const std::filesystem::path& path,
                                                        Kind kind = Kind::exclusive,
                                                        int (*lock)(int fd,
                                                                    int operation) = nullptr);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_), works_(other.works_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();
  /// False: the file system does not support locks (some on clusters: Lustre, NFS), and this lock
  /// excludes nobody.
  [[nodiscard]] bool works() const { return works_; }
  /// Closed in programs that this process starts, unless it is passed to them.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
  bool works_ = true;
};

/// Locks a folder that jobs (grids, tables) work in. Warns if locks are not supported. @throws
/// Error if another job holds it.
[[nodiscard]] FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind);

}  // namespace precast::tools
