#pragma once

#include <cerrno>

#include "framework/core/file.h"

namespace precast::test {

/// The real calls, of which the n-th fails with `errno_value`, or (0) writes only a part.
class FailingFileOps final : public FileOps {
 public:
  FailingFileOps(int nth, int errno_value) : left_(nth), errno_(errno_value) {}
  /// True once the n-th call has come.
  [[nodiscard]] bool failed() const { return left_ <= 0; }

  int create_exclusive(const char* path) override {
    return fails() ? -1 : real_.create_exclusive(path);
  }
  int open_append(const char* path) override { return fails() ? -1 : real_.open_append(path); }
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    if (fails()) return errno_ != 0 ? -1 : real_.write(fd, data, (size + 1) / 2);
    return real_.write(fd, data, size);
  }
  std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size, std::int64_t offset) override {
    if (fails()) return errno_ != 0 ? -1 : real_.pwrite(fd, data, (size + 1) / 2, offset);
    return real_.pwrite(fd, data, size, offset);
  }
  int ftruncate(int fd, std::int64_t size) override {
    return fails() ? -1 : real_.ftruncate(fd, size);
  }
  int fsync(int fd) override { return fails() && errno_ != 0 ? -1 : real_.fsync(fd); }
  int close(int fd) override {
    const bool fail = fails() && errno_ != 0;
    const int result = real_.close(fd);
    if (fail) errno = errno_;
    return fail ? -1 : result;
  }
  int rename(const char* from, const char* to) override {
    return fails() && errno_ != 0 ? -1 : real_.rename(from, to);
  }
  int unlink(const char* path) override { return real_.unlink(path); }
  int mkdir(const char* path) override { return fails() && errno_ != 0 ? -1 : real_.mkdir(path); }
  int fsync_folder(const char* path) override {
    return fails() && errno_ != 0 ? -1 : real_.fsync_folder(path);
  }

 private:
  bool fails() {
    if (--left_ != 0) return false;
    errno = errno_;
    return true;
  }

  FileOps& real_ = posix_file_ops();
  int left_;
  int errno_;
};

}  // namespace precast::test
