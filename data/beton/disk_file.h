#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "framework/core/export.h"

namespace precast::data {

/// A stretch of a file that lies in memory.
struct FileWindow {
  /// Of bytes[0] in the file.
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

/// A file that is read with pread, never mapped: one that shrinks or fails while it is read gives
/// an error and no SIGBUS. Thread-safe.
class PRECAST_API DiskFile {
 public:
  /// As ::pread; a test puts one that fails here.
  using Pread =
      std::function<std::ptrdiff_t(int fd, void* to, std::size_t bytes, std::int64_t offset)>;

  /// @throws IoError if the file cannot be opened or is no regular file.
  explicit DiskFile(const std::filesystem::path& path, Pread pread = {});
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  /// From now on past the page cache (O_DIRECT): for files that no other process reads and that
  /// would only push other things out of it. Before threads read. @throws IoError if the file
  /// system cannot.
  void read_directly();

  /// When it was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// What offset, length and memory of a read must be multiples of: 1 without O_DIRECT.
  [[nodiscard]] std::uint64_t alignment() const { return direct_ ? kDirectAlignment : 1; }

  /// Reads [offset, offset + to.size()), in several calls where one gives less. What lies behind
  /// the end of the file as it was opened is left as it is, so that aligned reads may reach over
  /// it. @throws IoError naming file and offset if a read fails; DataError if the file has become
  /// shorter.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

  static constexpr std::uint64_t kDirectAlignment = 4096;

 private:
  std::filesystem::path path_;
  bool direct_ = false;
  Pread pread_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace precast::data
