#include "framework/launch/watch_launcher.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace precast {
namespace {

/// @return the descriptor; -1 if `text` is not the number of a pipe that is open for reading.
int parse_pipe_fd(const std::string& text) {
  const int fd = parse_number<int>(text).value_or(-1);
  if (fd < 0) return -1;
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return -1;
  return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? fd : -1;
}

void wait_for_end(int fd) {
  char byte = 0;
  while (true) {
    // Nobody writes to the pipe: read() returns when the launcher ends.
    const ssize_t size = read(fd, &byte, 1);
    if (size == 0) _exit(static_cast<int>(ExitCode::peer_failed));
    if (size < 0 && errno != EINTR) return;
  }
}

}  // namespace

bool watch_launcher() {
  const char* value = std::getenv(kLauncherPipeVariable);
  if (value == nullptr) return false;
  const int fd = parse_pipe_fd(value);
  unsetenv(kLauncherPipeVariable);
  if (fd < 0) return false;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  // The new thread inherits this mask, so that signals are delivered to the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(wait_for_end, fd).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

}  // namespace precast
