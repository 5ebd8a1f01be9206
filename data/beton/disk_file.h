#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "framework/core/export.h"

namespace precast::data {

/// A part of a file, in memory.
struct FileWindow {
  /// Offset of bytes[0] in the file.
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

/// A file that is read with pread and never mapped: if the file shrinks or the disk fails during a
/// read, the result is an error instead of a SIGBUS. Thread-safe.
class PRECAST_API DiskFile {
 public:
  /// Same signature as ::pread. Tests pass a function that fails.
  using Pread =
      std::function<std::ptrdiff_t(int fd, void* to, std::size_t bytes, std::int64_t offset)>;

  /// @throws IoError if the file cannot be opened or is not a regular file.
  explicit DiskFile(const std::filesystem::path& path, Pread pread = {});
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;
  ~DiskFile();

  /// Bypasses the page cache from now on (O_DIRECT). Useful for a file that no other process reads:
  /// caching it would only evict other data. Call before threads read. @throws IoError if the file
  /// system does not support it.
  void enable_direct_io();

  /// Size of the file when it was opened.
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Offset, length and memory address of a read must be multiples of this: 1 without O_DIRECT.
  [[nodiscard]] std::uint64_t alignment() const { return direct_ ? kDirectAlignment : 1; }

  /// Reads [offset, offset + to.size()); calls pread again if it returns fewer bytes. The range may
  /// extend past the end that the file had when it was opened, as aligned reads do; the bytes of
  /// `to` after that end are unspecified. @throws IoError naming file and offset if a read fails;
  /// DataError if the file has become shorter.
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
