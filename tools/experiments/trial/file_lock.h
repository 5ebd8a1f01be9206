#pragma once

#include <filesystem>
#include <optional>

namespace precast::tools {

/// A lock between processes on a file (flock). It holds until this object and every process that
/// inherited its descriptor are gone: also after kill -9 of this process a child keeps it.
class FileLock {
 public:
  enum class Kind { shared, exclusive };
  /// Creates the file where it is missing. @param lock flock, or what a test has in its place.
  /// @return nothing if another process holds it. @throws IoError
  [[nodiscard]] static std::optional<FileLock> try_lock(const std::filesystem::path& path,
                                                        Kind kind = Kind::exclusive,
                                                        int (*lock)(int fd,
                                                                    int operation) = nullptr);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_), works_(other.works_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();
  /// False: the file system knows no locks (some of clusters: Lustre, NFS), and this one keeps
  /// nobody out.
  [[nodiscard]] bool works() const { return works_; }
  /// Closed in programs that this process starts, unless they are given it.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
  bool works_ = true;
};

/// The lock of a folder that jobs (grids, tables) work in. Where there are no locks, a warning says
/// so. @throws Error if another one does.
[[nodiscard]] FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind);

}  // namespace precast::tools
