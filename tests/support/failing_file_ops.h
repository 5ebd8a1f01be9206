#pragma once

#include <cerrno>

#include "tests/support/forwarding_file_ops.h"

namespace precast::test {

/// Makes the real calls, except that the n-th call fails with `errno_value`. If `errno_value` is 0
/// and the call is a write, it writes only a part. Calls that clean up (unlink, rmdir) never fail
/// and are not counted. Syncs are counted but not performed, so that tests of many calls are fast.
class FailingFileOps : public ForwardingFileOps {
 public:
  FailingFileOps(int nth, int errno_value) : left_(nth), errno_(errno_value) {}
  /// Whether the n-th call has been made.
  [[nodiscard]] bool failed() const { return left_ <= 0; }

  int create_exclusive(const char* path) override {
    return fails() ? -1 : ForwardingFileOps::create_exclusive(path);
  }
  int open_append(const char* path) override {
    return fails() ? -1 : ForwardingFileOps::open_append(path);
  }
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    return fails(&size) ? -1 : ForwardingFileOps::write(fd, data, size);
  }
  std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size, std::int64_t offset) override {
    return fails(&size) ? -1 : ForwardingFileOps::pwrite(fd, data, size, offset);
  }
  int ftruncate(int fd, std::int64_t size) override {
    return fails() ? -1 : ForwardingFileOps::ftruncate(fd, size);
  }
  int fsync(int /*fd*/) override { return fails() ? -1 : 0; }
  int close(int fd) override {
    // On Linux, the descriptor is closed even if close fails.
    const int result = ForwardingFileOps::close(fd);
    return fails() ? -1 : result;
  }
  int rename(const char* from, const char* to) override {
    return fails() ? -1 : ForwardingFileOps::rename(from, to);
  }
  int exchange(const char* a, const char* b) override {
    return fails() ? -1 : ForwardingFileOps::exchange(a, b);
  }
  int mkdir(const char* path) override { return fails() ? -1 : ForwardingFileOps::mkdir(path); }
  int fsync_folder(const char* /*path*/) override { return fails() ? -1 : 0; }
  std::int64_t free_bytes(const char* path) override {
    return fails() ? -1 : ForwardingFileOps::free_bytes(path);
  }

 private:
  bool fails(std::size_t* size = nullptr) {
    if (--left_ != 0) return false;
    if (errno_ == 0) {
      if (size != nullptr) *size = (*size + 1) / 2;
      return false;
    }
    errno = errno_;
    return true;
  }

  int left_;
  int errno_;
};

}  // namespace precast::test
