#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "tests/support/forwarding_file_ops.h"

namespace precast::test {

/// A disk on which write() fails while `full` is set, and otherwise writes at most
/// `max_write_bytes` bytes.
class FullDisk final : public ForwardingFileOps {
 public:
  explicit FullDisk(std::size_t max_write_bytes) : max_write_bytes_(max_write_bytes) {}
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    if (full) {
      errno = ENOSPC;
      return -1;
    }
    return ForwardingFileOps::write(fd, data, std::min(size, max_write_bytes_));
  }
  bool full = false;

 private:
  std::size_t max_write_bytes_;
};

/// A disk with room for `left` bytes: write() writes as many bytes as fit.
class PartlyFullDisk final : public ForwardingFileOps {
 public:
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    if (left == 0 && size > 0) {
      errno = ENOSPC;
      return -1;
    }
    const std::ptrdiff_t written = ForwardingFileOps::write(fd, data, std::min(size, left));
    if (written > 0) left -= static_cast<std::size_t>(written);
    return written;
  }
  std::size_t left = 1000;
};

}  // namespace precast::test
