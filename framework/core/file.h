#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/export.h"

namespace precast {

/// An interface to the system calls that write files and folders, so that a test can make the n-th
/// call fail. Functions return what the corresponding POSIX functions return, and set errno.
/// Implementations are thread-safe.
class PRECAST_API FileOps {
 public:
  virtual ~FileOps();
  /// Creates a file that must not exist yet, for reading and writing.
  virtual int create_exclusive(const char* path) = 0;
  /// Opens a file for appending; creates it if it is missing.
  virtual int open_append(const char* path) = 0;
  virtual std::ptrdiff_t write(int fd, const void* data, std::size_t size) = 0;
  virtual std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size,
                                std::int64_t offset) = 0;
  virtual int ftruncate(int fd, std::int64_t size) = 0;
  virtual int fsync(int fd) = 0;
  virtual int close(int fd) = 0;
  virtual int rename(const char* from, const char* to) = 0;
  /// Exchanges the two names atomically (renameat2). Fails with EINVAL or ENOSYS on file systems
  /// that do not support it, such as NFS.
  virtual int exchange(const char* a, const char* b) = 0;
  virtual int unlink(const char* path) = 0;
  virtual int rmdir(const char* path) = 0;
  virtual int mkdir(const char* path) = 0;
  /// Makes changes to the entries of a folder durable.
  virtual int fsync_folder(const char* path) = 0;
  /// Bytes that an unprivileged user can still write to the file system of `path`; INT64_MAX if the
  /// file system does not report it; -1 on an error.
  virtual std::int64_t free_bytes(const char* path) = 0;
};

/// The operating system's own calls.
[[nodiscard]] PRECAST_API FileOps& posix_file_ops();

/// Repeats a call of FileOps for as long as it fails with EINTR. Not for close().
template <typename Call>
auto retry_on_eintr(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

/// A file that appears under its name only when it is complete. It is written under a temporary
/// name in the same folder; commit() then syncs and renames it. Without commit(), the destructor
/// removes the temporary file, and an older file of the same name stays. A process that is killed
/// leaves its temporary file, `FILE.tmp.<process>.<count>`. Later writers do not remove it, because
/// a process on another host or in another container might be writing it. If the name is a symbolic
/// link, the link stays and its target is replaced. Short writes and interrupted calls are retried.
/// Not thread-safe.
class PRECAST_API AtomicFile {
 public:
  /// @throws IoError naming `path` if its folder does not exist or is not writable, or `path`
  /// exists and is not a regular file.
  explicit AtomicFile(const std::filesystem::path& path, FileOps& ops = posix_file_ops());
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void append(std::span<const std::byte> bytes);
  void append(std::string_view text);
  /// Writes at byte `offset`, inside the file or past its end. Does not change the position at
  /// which append() writes. @throws IoError
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Reads back what was written. @throws IoError, including when the file is shorter.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  /// Bytes appended so far.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The file that commit() creates or replaces: if the given path is a symbolic link, its target.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Makes the file durable and visible. Call once. @throws IoError
  void commit();

 private:
  FileOps& ops_;
  std::filesystem::path path_;
  std::string temporary_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// Writes a file atomically. @throws IoError
PRECAST_API void write_file(const std::filesystem::path& path, std::string_view text,
                            FileOps& ops = posix_file_ops());

/// Opens a regular file for reading; the caller closes the descriptor. @param status is set to the
/// result of fstat(). @throws IoError
[[nodiscard]] PRECAST_API int open_regular(const std::filesystem::path& path, struct stat& status);

/// Reads an entire file. @param max_bytes size limit. @throws IoError, including for a larger file
[[nodiscard]] PRECAST_API std::vector<std::byte> read_file(const std::filesystem::path& path,
                                                           std::uint64_t max_bytes = UINT64_MAX);

/// Creates `path` and its missing parents, durably. @throws IoError naming the folder that could
/// not be created.
PRECAST_API void create_folders(const std::filesystem::path& path, FileOps& ops = posix_file_ops());

/// A file that is mapped read-only. Processes that map the same file share its memory. Immovable,
/// thread-safe.
class PRECAST_API MappedFile {
 public:
  /// @throws IoError if `path` is missing, not a regular file or unreadable.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Closes the file's descriptor, for callers that map thousands of files. The mapping stays
  /// valid, but from then on cached() returns false and will_need() does nothing. Do not call this
  /// while another thread calls one of these functions.
  void close_descriptor();

  /// Whether the byte at `offset` is in the page cache; false if the file system does not report
  /// this.
  [[nodiscard]] bool cached(std::uint64_t offset) const;
  /// Asks the kernel to prefetch exactly this range into the page cache; does not wait for the
  /// data.
  void will_need(std::uint64_t offset, std::uint64_t bytes) const;
  /// Makes the kernel read only the missing memory page on each page fault, not the pages around
  /// it.
  void disable_readahead() const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace precast
