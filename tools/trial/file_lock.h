#pragma once

#include <filesystem>
#include <optional>

namespace precast::tools {

/// A lock between processes on a file (flock). It holds until this object and every process that
/// inherited its descriptor are gone: also after kill -9 of this process a child keeps it.
class FileLock {
 public:
  enum class Kind { shared, exclusive };
  /// Creates the file where it is missing. @return nothing if another process holds it.
  /// @throws IoError
  [[nodiscard]] static std::optional<FileLock> try_lock(const std::filesystem::path& path,
                                                        Kind kind = Kind::exclusive);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();
  /// Closed in programs that this process starts, unless they are given it.
  [[nodiscard]] int fd() const { return fd_; }

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

/// The lock of a folder that jobs (grids, tables) work in. @throws Error if another one does.
[[nodiscard]] FileLock lock_job_folder(const std::filesystem::path& folder, FileLock::Kind kind);

}  // namespace precast::tools
