#include "framework/core/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"

namespace precast {
namespace {

constexpr mode_t kFileMode = 0644;
constexpr mode_t kFolderMode = 0755;
constexpr int kMaxTakenNames = 100'000;
/// Linux follows at most this many symbolic links too.
constexpr int kMaxLinks = 40;

class PosixFileOps final : public FileOps {
 public:
  int create_exclusive(const char* path) override {
    return ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
  }
  int open_append(const char* path) override {
    return ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode);
  }
  std::ptrdiff_t write(int fd, const void* data, std::size_t size) override {
    return ::write(fd, data, size);
  }
  std::ptrdiff_t pwrite(int fd, const void* data, std::size_t size, std::int64_t offset) override {
    return ::pwrite(fd, data, size, offset);
  }
  int ftruncate(int fd, std::int64_t size) override { return ::ftruncate(fd, size); }
  int fsync(int fd) override { return ::fsync(fd); }
  int close(int fd) override { return ::close(fd); }
  int rename(const char* from, const char* to) override { return ::rename(from, to); }
  int exchange(const char* a, const char* b) override {
    return ::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
  }
  int unlink(const char* path) override { return ::unlink(path); }
  int rmdir(const char* path) override { return ::rmdir(path); }
  int mkdir(const char* path) override { return ::mkdir(path, kFolderMode); }
  int fsync_folder(const char* path) override {
    const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -1;
    const int result = ::fsync(fd);
    ::close(fd);
    return result;
  }
  std::int64_t free_bytes(const char* path) override {
    struct statvfs status {};
    if (::statvfs(path, &status) != 0) return -1;
    std::uint64_t bytes = 0;
    const bool is_known = status.f_blocks > 0 &&
                          !__builtin_mul_overflow(status.f_bavail, status.f_frsize, &bytes) &&
                          bytes <= INT64_MAX;
    return is_known ? static_cast<std::int64_t>(bytes) : INT64_MAX;
  }
};

std::string folder_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  return parent.empty() ? "." : parent.string();
}

/// Follows symbolic links to the final target, which need not exist. This is needed because a
/// rename replaces a link, not its target. @throws IoError
std::filesystem::path follow_links(const std::filesystem::path& path) {
  std::filesystem::path target = path;
  std::error_code failure;
  for (int links = 0; std::filesystem::is_symlink(target, failure); ++links) {
    if (links == kMaxLinks) throw IoError("cannot write", path.string(), ELOOP);
    const std::filesystem::path next = std::filesystem::read_symlink(target, failure);
    if (failure) throw IoError("cannot read the link", target.string(), failure.value());
    target = target.parent_path() / next;
  }
  return target;
}

/// A different name for each call, so that two writers of one file never use the same temporary
/// file, even in different processes.
std::string temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}.tmp.{}.{}", path.string(), ::getpid(), count++);
}

/// Repeats `call(data, size, offset)` until all is written. A call that writes nothing counts as a
/// full disk.
template <typename Call>
void write_all(std::span<const std::byte> bytes, std::uint64_t offset, const std::string& path,
               Call call) {
  while (!bytes.empty()) {
    const std::ptrdiff_t written = call(bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw IoError("cannot write", path, written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

/// Closes the descriptor in its destructor.
struct OpenFile {
  explicit OpenFile(int descriptor) : fd(descriptor) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(fd); }
  int fd;
};

/// Whether mincore() reports which pages of the file are in memory. It does so only for users who
/// own the file or may write to it; for others, it reports that all pages are in memory.
bool can_query_residency(int fd, const std::filesystem::path& path) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 &&
         (status.st_uid == ::geteuid() || ::access(path.c_str(), W_OK) == 0);
}

}  // namespace

FileOps::~FileOps() = default;

FileOps& posix_file_ops() {
  static PosixFileOps ops;
  return ops;
}

AtomicFile::AtomicFile(const std::filesystem::path& path, FileOps& ops)
    : ops_(ops), path_(follow_links(path)), temporary_(temporary_name(path_)) {
  std::error_code ignored;
  // Uses `path`, not path_, because the target of a link such as /proc/self/fd/1 may not be a path
  // ("pipe:[7]").
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(there)) {
    throw IoError("cannot write", path_.string(), EISDIR);
  }
  if (std::filesystem::is_other(there)) {
    throw IoError(
        fmt::format("cannot write {}: expected a regular file or a new name, got a device, a "
                    "pipe or a socket",
                    path_.string()));
  }
  const auto create = [&] { return ops_.create_exclusive(temporary_.c_str()); };
  fd_ = retry_on_eintr(create);
  // A killed process with the same id may have left a file of this name; in containers, process ids
  // repeat.
  for (int attempt = 0; fd_ < 0 && errno == EEXIST && attempt < kMaxTakenNames; ++attempt) {
    temporary_ = temporary_name(path_);
    fd_ = retry_on_eintr(create);
  }
  if (fd_ < 0) throw IoError("cannot create", path_.string(), errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ops_.close(fd_);
  if (!temporary_.empty()) ops_.unlink(temporary_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  write_at(size_, bytes);
  size_ += bytes.size();
}

void AtomicFile::append(std::string_view text) {
  append(std::as_bytes(std::span(text.data(), text.size())));
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  write_all(bytes, offset, path_.string(),
            [this](const void* data, std::size_t size, std::uint64_t at) {
              return ops_.pwrite(fd_, data, size, static_cast<std::int64_t>(at));
            });
}

void AtomicFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto got = retry_on_eintr(
        [&] { return ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (got <= 0) throw IoError("cannot read back", path_.string(), got < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void AtomicFile::commit() {
  failpoint("atomic_file.before_sync");
  if (retry_on_eintr([&] { return ops_.fsync(fd_); }) != 0)
    throw IoError("cannot sync", path_.string(), errno);
  // On Linux, an interrupted close() has closed the descriptor. A second call could close a file
  // that another thread has opened since.
  if (ops_.close(std::exchange(fd_, -1)) != 0 && errno != EINTR) {
    throw IoError("cannot close", path_.string(), errno);
  }
  failpoint("atomic_file.before_rename");
  if (retry_on_eintr([&] { return ops_.rename(temporary_.c_str(), path_.c_str()); }) != 0) {
    throw IoError("cannot rename the temporary file to", path_.string(), errno);
  }
  temporary_.clear();
  if (retry_on_eintr([&] { return ops_.fsync_folder(folder_of(path_).c_str()); }) != 0) {
    throw IoError("cannot sync the folder of", path_.string(), errno);
  }
}

void write_file(const std::filesystem::path& path, std::string_view text, FileOps& ops) {
  AtomicFile file(path, ops);
  file.append(text);
  file.commit();
}

int open_regular(const std::filesystem::path& path, struct stat& status) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw IoError("cannot open", path.string(), errno);
  if (::fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
  ::close(fd);
  throw IoError(fmt::format(
      "cannot read {}: expected a regular file, got a folder or a special file", path.string()));
}

std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  struct stat status {};
  const OpenFile file(open_regular(path, status));
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes) {
    throw IoError(fmt::format("{}: expected at most {} bytes, got {}", path.string(), max_bytes,
                              status.st_size));
  }
  // Reads the file instead of mapping it: if another process truncates the file meanwhile (a run
  // does this with its log), an access to a mapped page past the new end would raise SIGBUS.
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t size = 0;
  while (size < bytes.size()) {
    const auto got =
        retry_on_eintr([&] { return ::read(file.fd, bytes.data() + size, bytes.size() - size); });
    if (got < 0) throw IoError("cannot read", path.string(), errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

void create_folders(const std::filesystem::path& path, FileOps& ops) {
  std::filesystem::path built;
  for (const std::filesystem::path& part : path) {
    built /= part;
    std::error_code failure;
    if (std::filesystem::is_directory(built, failure)) continue;
    const bool created = retry_on_eintr([&] { return ops.mkdir(built.c_str()); }) == 0;
    if (!created && errno != EEXIST) {
      throw IoError("cannot create folder", built.string(), errno);
    }
    if (created &&
        retry_on_eintr([&] { return ops.fsync_folder(folder_of(built).c_str()); }) != 0) {
      throw IoError("cannot sync the folder of", built.string(), errno);
    }
    if (!std::filesystem::is_directory(built, failure)) {
      throw IoError("cannot create folder", built.string(), failure ? failure.value() : ENOTDIR);
    }
  }
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  struct stat status {};
  fd_ = open_regular(path, status);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  // Without this advice, from Linux 6.12 on, the non-blocking read in cached() would read ahead
  // several pages if its byte is not cached. The advice does not affect page faults.
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (mapped == MAP_FAILED) {
    const int map_errno = errno;
    ::close(fd_);
    throw IoError("cannot map", path.string(), map_errno);
  }
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  close_descriptor();
}

void MappedFile::close_descriptor() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool MappedFile::cached(std::uint64_t offset) const {
  if (offset >= size_ || fd_ < 0) return false;
  if (can_query_residency(fd_, path_)) {
    static const auto kPageBytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    unsigned char page = 0;
    auto* const at = const_cast<std::byte*>(data_) + offset / kPageBytes * kPageBytes;
    return ::mincore(at, 1, &page) == 0 && (page & 1) != 0;
  }
  // From Linux 6.12 on, the call starts to read a page that is not cached. A fast disk may deliver
  // the page before the call returns; the page then counts as cached.
  char byte = 0;
  const iovec to{.iov_base = &byte, .iov_len = 1};
  return ::preadv2(fd_, &to, 1, static_cast<off_t>(offset), RWF_NOWAIT) == 1;
}

void MappedFile::will_need(std::uint64_t offset, std::uint64_t bytes) const {
  // The kernel limits a request to the disk's read-ahead size, usually 128 KiB.
  constexpr std::uint64_t kRequestBytes = std::uint64_t{128} << 10;
  const std::uint64_t end = std::min<std::uint64_t>(size_, offset) +
                            std::min(bytes, size_ - std::min<std::uint64_t>(size_, offset));
  for (; offset < end; offset += kRequestBytes) {
    ::posix_fadvise(fd_, static_cast<off_t>(offset),
                    static_cast<off_t>(std::min(kRequestBytes, end - offset)), POSIX_FADV_WILLNEED);
  }
}

void MappedFile::disable_readahead() const {
  if (data_ != nullptr) ::madvise(const_cast<std::byte*>(data_), size_, MADV_RANDOM);
}

}  // namespace precast
