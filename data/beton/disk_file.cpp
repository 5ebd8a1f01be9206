#include "data/beton/disk_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/failpoint.h"
#include "framework/core/file.h"

namespace precast::data {

DiskFile::DiskFile(const std::filesystem::path& path, Pread pread)
    : path_(path), pread_(pread ? std::move(pread) : Pread(::pread)) {
  // With O_NONBLOCK, opening a pipe does not wait for a writer.
  fd_ = retry_on_eintr([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd_ < 0) throw IoError("cannot open", path.string(), errno);
  struct stat status {};
  const bool known = ::fstat(fd_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const int failure = known ? EINVAL : errno;
    ::close(fd_);
    if (known)
      throw IoError(fmt::format("{}: expected a regular file, got a folder or a special file",
                                path.string()));
    throw IoError("cannot open", path.string(), failure);
  }
  // Clears O_NONBLOCK, with which some file systems return EAGAIN even from regular files.
  static_cast<void>(::fcntl(fd_, F_SETFL, 0));
  size_ = static_cast<std::uint64_t>(status.st_size);
}

DiskFile::~DiskFile() {
  ::close(fd_);
}

void DiskFile::enable_direct_io() {
  if (::fcntl(fd_, F_SETFL, O_DIRECT) != 0) {
    throw IoError(fmt::format(
        "{}: expected a file system that can bypass the page cache (O_DIRECT), got: {}. Leave out "
        "data.direct_io",
        path_.string(), std::strerror(errno)));
  }
  direct_ = true;
}

void DiskFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  const std::uint64_t expected =
      std::min<std::uint64_t>(to.size(), size_ - std::min(size_, offset));
  std::uint64_t done = 0;
  while (done < expected) {
    failpoint("disk.before_read");
    const std::ptrdiff_t got = retry_on_eintr([&] {
      return pread_(fd_, to.data() + done, to.size() - done,
                    static_cast<std::int64_t>(offset + done));
    });
    if (got < 0) {
      throw IoError(fmt::format("cannot read at byte {} of", offset + done), path_.string(), errno);
    }
    // A direct read must continue at an aligned offset, so a result of less than one unit is no
    // progress.
    const std::uint64_t now = done + static_cast<std::uint64_t>(got);
    const std::uint64_t next = now < expected ? now / alignment() * alignment() : now;
    if (next == done) {
      throw DataError(fmt::format(
          "{}: expected {} bytes at byte {}, got {}. The file was truncated while it was read",
          path_.string(), expected, offset, now));
    }
    done = next;
  }
}

}  // namespace precast::data
