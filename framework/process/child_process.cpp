#include "framework/process/child_process.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "framework/process/spawn.h"

namespace precast {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Kills a process, and before it the processes that it has started and those that they have
/// started. A process group cannot be used for this: the terminal's signals (Ctrl-C) would not
/// reach a child in its own group, and a descendant may have its own group, as the ranks of a
/// launcher do.
void kill_tree(pid_t process) {
  // A suspended process starts no more processes and does not reap its children, so that their ids
  // cannot pass to other processes.
  kill(process, SIGSTOP);
  const fs::path threads = fmt::format("/proc/{}/task", process);
  std::error_code failure;
  for (fs::directory_iterator thread(threads, failure), end; !failure && thread != end;
       thread.increment(failure)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) kill_tree(child);
  }
  kill(process, SIGKILL);
}

/// Reads both pipes until the child has closed them. @return false if `deadline` passes first.
bool collect(const Pipe& output, const Pipe& errors, Clock::time_point deadline,
             ChildResult& result) {
  constexpr std::size_t kMostBytes = 1'000'000;
  std::array<pollfd, 2> waits{pollfd{output.reader(), POLLIN, 0},
                              pollfd{errors.reader(), POLLIN, 0}};
  const std::array<std::string*, 2> texts{&result.output, &result.errors};
  std::array<char, 4096> buffer{};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    if (poll(waits.data(), waits.size(), static_cast<int>(std::min<long>(left.count(), 1000))) < 0)
      continue;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].fd < 0 || waits[i].revents == 0) continue;
      const ssize_t size = read(waits[i].fd, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) {
        waits[i].fd = -1;  // poll() ignores negative descriptors
      } else if (texts[i]->size() < kMostBytes) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(size));
      }
    }
  }
  return true;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& arguments,
                      std::chrono::milliseconds timeout) {
  ChildResult result;
  Pipe output;
  Pipe errors;
  pid_t child = 0;
  const std::array<InheritedFile, 2> files{InheritedFile{output.writer(), STDOUT_FILENO},
                                           InheritedFile{errors.writer(), STDERR_FILENO}};
  const int failure = spawn(arguments, current_environment(), files, false, child);
  if (failure != 0) {
    result.exit_code = 127;
    result.errors = arguments[0] + ": " + std::strerror(failure);
    return result;
  }
  output.close_writer();
  errors.close_writer();
  if (!collect(output, errors, Clock::now() + timeout, result)) {
    result.timed_out = true;
    kill_tree(child);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace precast
