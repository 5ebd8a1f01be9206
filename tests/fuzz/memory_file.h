#pragma once

#include <cstdint>
#include <vector>

#include "framework/core/file.h"

namespace precast::fuzz {

/// One file in memory, so that a round trip through a writer takes microseconds. It contains what
/// was written last; names do not matter. Not thread-safe.
class MemoryFile final : public FileOps {
 public:
  /// A path to write to: its folder exists, but the file does not.
  static constexpr const char* kPath = "/tmp/precast-fuzz-is-never-on-disk";

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  int create_exclusive(const char* path) override;
  int open_append(const char* path) override;
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override;
  std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size, std::int64_t offset) override;
  int ftruncate(int fd, std::int64_t size) override;
  int fsync(int) override { return 0; }
  int close(int) override { return 0; }
  int rename(const char*, const char*) override { return 0; }
  int exchange(const char*, const char*) override { return 0; }
  int unlink(const char*) override { return 0; }
  int rmdir(const char*) override { return 0; }
  int mkdir(const char*) override { return 0; }
  int fsync_folder(const char*) override { return 0; }
  std::int64_t free_bytes(const char*) override { return INT64_MAX; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace precast::fuzz
