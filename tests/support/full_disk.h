#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "tests/support/forwarding_file_ops.h"

namespace precast::test {

/// A disk that is full while `full` is set. Otherwise, a call writes at most `most` bytes.
class FullDisk final : public ForwardingFileOps {
 public:
  explicit FullDisk(std::size_t most) : most_(most) {}
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    if (full) {
      errno = ENOSPC;
      return -1;
    }
    return ForwardingFileOps::write(fd, data, std::min(size, most_));
  }
  bool full = false;

 private:
  std::size_t most_;
};

}  // namespace precast::test
