#include "framework/core/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

namespace precast {

void log_line(std::string_view line) {
  // "\r\033[K" erases a progress line on a terminal. It is written in the same call as the line, so
  // that no other output comes between them.
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  write_stderr(fmt::format("{}{}\n", terminal ? "\r\033[K" : "", line));
}

void write_stderr(std::string_view text) noexcept {
  // Unlike fmt::print, fwrite does not throw if the reader has exited.
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void open_closed_streams() noexcept {
  // open() returns the lowest free descriptor number. This is `fd`, because all lower ones are
  // open. Standard output is opened for reading only, so that printing results to it is still an
  // error.
  for (const auto& [fd, mode] :
       {std::pair(STDIN_FILENO, O_RDONLY), std::pair(STDOUT_FILENO, O_RDONLY),
        std::pair(STDERR_FILENO, O_WRONLY)}) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) static_cast<void>(::open("/dev/null", mode));
  }
}

}  // namespace precast
