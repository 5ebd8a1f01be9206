#include "framework/process/bus_error.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "framework/core/error.h"

namespace precast {
// Everything in this namespace runs in a signal handler: no locks, no memory from the heap.
namespace {

/// A line of /proc/self/maps: `BEGIN-END RIGHTS OFFSET DEVICE INODE PATH`, with hexadecimal
/// addresses and a path that is empty for memory without a file.
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string_view path;
};

Mapping parse_mapping(std::string_view line) {
  Mapping mapping;
  const char* const last = line.data() + line.size();
  const auto begin = std::from_chars(line.data(), last, mapping.begin, 16);
  if (begin.ptr == last) return {};
  std::from_chars(begin.ptr + 1, last, mapping.end, 16);
  if (const auto slash = line.find('/'); slash != std::string_view::npos)
    mapping.path = line.substr(slash);
  return mapping;
}

/// Reads /proc/self/maps line by line.
class Mappings {
 public:
  Mappings() : fd_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;
  ~Mappings() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// @return false after the last line. `line` is valid until the next call.
  bool next(std::string_view& line) {
    std::copy(buffer_.begin() + used_, buffer_.begin() + filled_, buffer_.begin());
    filled_ -= used_;
    used_ = 0;
    for (;;) {
      const std::string_view held(buffer_.data(), static_cast<std::size_t>(filled_));
      if (const auto length = held.find('\n'); length != std::string_view::npos) {
        line = held.substr(0, length);
        used_ = static_cast<std::ptrdiff_t>(length) + 1;
        return true;
      }
      const ssize_t got = ::read(fd_, buffer_.data() + filled_, buffer_.size() - held.size());
      if (got <= 0) return false;
      filled_ += got;
    }
  }

 private:
  int fd_;
  std::array<char, PATH_MAX + 128> buffer_{};
  std::ptrdiff_t used_ = 0;
  std::ptrdiff_t filled_ = 0;
};

/// Whether a thread is reporting a bus error. Only the first thread reports; others, which usually
/// read the same file, wait until it ends the process.
std::atomic<bool> g_reporting{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Writes the message with one call, so that it stays in one piece if several processes write.
void write_message(std::string_view path) {
  const auto part = [](std::string_view text) {
    return iovec{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  };
  const std::array parts = {
      part("error: "), part(path),
      part(": expected every page of the mapped file, got a bus error. The file was shortened while"
           " it was in use, or its disk failed or is full\n")};
  static_cast<void>(::writev(STDERR_FILENO, parts.data(), static_cast<int>(parts.size())));
}

/// Whether the path is a file on a disk or in shared memory, not a device such as a GPU.
bool is_file(std::string_view path) {
  return !path.empty() && (!path.starts_with("/dev/") || path.starts_with("/dev/shm/"));
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  while (g_reporting.exchange(true)) ::pause();
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool from_kernel = info->si_code > 0;
  Mappings mappings;
  for (std::string_view line; from_kernel && mappings.next(line);) {
    const Mapping mapping = parse_mapping(line);
    if (address < mapping.begin || address >= mapping.end || !is_file(mapping.path)) continue;
    write_message(mapping.path);
    ::_exit(static_cast<int>(ExitCode::io));
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);  // blocked in this handler; ends the process when the handler returns
}

}  // namespace

void report_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace precast
