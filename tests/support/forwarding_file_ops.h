#pragma once

#include "framework/core/file.h"

namespace precast::test {

/// Makes the real calls; derived classes override the calls that they change.
class ForwardingFileOps : public FileOps {
 public:
  int create_exclusive(const char* path) override { return real_.create_exclusive(path); }
  int open_append(const char* path) override { return real_.open_append(path); }
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    return real_.write(fd, data, size);
  }
  std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size, std::int64_t offset) override {
    return real_.pwrite(fd, data, size, offset);
  }
  int ftruncate(int fd, std::int64_t size) override { return real_.ftruncate(fd, size); }
  int fsync(int fd) override { return real_.fsync(fd); }
  int close(int fd) override { return real_.close(fd); }
  int rename(const char* from, const char* to) override { return real_.rename(from, to); }
  int exchange(const char* a, const char* b) override { return real_.exchange(a, b); }
  int unlink(const char* path) override { return real_.unlink(path); }
  int rmdir(const char* path) override { return real_.rmdir(path); }
  int mkdir(const char* path) override { return real_.mkdir(path); }
  int fsync_folder(const char* path) override { return real_.fsync_folder(path); }
  std::int64_t free_bytes(const char* path) override { return real_.free_bytes(path); }

 private:
  FileOps& real_ = posix_file_ops();
};

}  // namespace precast::test
